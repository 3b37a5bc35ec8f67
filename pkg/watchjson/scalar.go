package watchjson

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/json" // reads integers as such
)

// errUnread is the error of a text that the parser does not read. The caller has the JSON
// library read the text instead. The library's error reports an invalid text.
var errUnread = errors.New("not read")

// unquote returns the value of a string. The library reads strings with escapes or broken UTF-8.
func unquote(token []byte, intern func([]byte) string) (text string, err error) {
	plain := token[1 : len(token)-1]
	if bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return intern(plain), nil
	}
	if json.Unmarshal(token, &text) != nil {
		return "", errUnread
	}
	return text, nil
}

// numberOf returns an integer where an int64 holds the number, as the library does.
func numberOf(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, errUnread
	}
	return f, nil
}

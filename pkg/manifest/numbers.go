package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// errDigits is the error of an integer that would become a float.
var errDigits = errors.New("an integer has more digits than 64 bits hold, and would lose some: quote it if it is a text")

// fewestDigits is the length of the shortest integer that no int64 holds: that
// of a binary one is longer, that of a hexadecimal one has its 0x.
const fewestDigits = 18

// losesDigits tells if the text is an integer, in whatever base, that no int64 holds.
func losesDigits(text string) bool {
	if len(text) < fewestDigits {
		return false
	}
	_, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
	return errors.Is(err, strconv.ErrRange)
}

// checkNumbers refuses integers of JSON that would lose digits.
func checkNumbers(document []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if number, ok := token.(json.Number); ok && losesDigits(number.String()) {
			return errDigits
		}
	}
}

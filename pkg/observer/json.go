package observer

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/json" // reads integers as such
)

// errText is the error of a text that the parser does not read. Whoever gets it has
// the library read all of it, which tells what is wrong, if anything is.
var errText = errors.New("not read")

// maxNesting is how deep the parser goes; the library goes further.
const maxNesting = 1000

// parser reads JSON as the library does into values of any type, but only what it is
// asked for: what is passed over is checked, and becomes nothing. A text that it
// reads to its end, the library reads as well, to the same value.
type parser struct {
	*words

	text  []byte
	at    int
	depth int
}

// peek gives the next byte that is no space, 0 at the end.
func (p *parser) peek() byte {
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

func (p *parser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

// value reads a value.
func (p *parser) value() (any, error) {
	switch p.peek() {
	case '{':
		return p.fields()
	case '[':
		return p.elements()
	case '"':
		token, err := p.quoted()
		if err != nil {
			return nil, err
		}
		return unquote(token, p.short)
	case 't':
		return true, p.literal("true")
	case 'f':
		return false, p.literal("false")
	case 'n':
		return nil, p.literal("null")
	}
	token, err := p.number()
	if err != nil {
		return nil, err
	}
	return numberOf(string(token))
}

func (p *parser) fields() (map[string]any, error) {
	fields := map[string]any{}
	err := p.object(func(name string) error {
		value, err := p.value()
		fields[name] = value
		return err
	})
	return fields, err
}

func (p *parser) elements() ([]any, error) {
	elements := []any{}
	err := p.list(func() error {
		value, err := p.value()
		elements = append(elements, value)
		return err
	})
	return elements, err
}

// skip passes over a value, and gives its text.
func (p *parser) skip() ([]byte, error) {
	first := p.peek()
	start := p.at
	var err error
	switch first {
	case '{':
		err = p.members(func() error {
			_, err := p.skip()
			return err
		})
	case '[':
		err = p.list(func() error {
			_, err := p.skip()
			return err
		})
	case '"':
		_, err = p.quoted()
	case 't':
		err = p.literal("true")
	case 'f':
		err = p.literal("false")
	case 'n':
		err = p.literal("null")
	default:
		_, err = p.number()
	}
	return p.text[start:p.at], err
}

// object has each field read, which is told its name.
func (p *parser) object(field func(name string) error) error {
	return p.within('{', '}', func() error {
		name, err := p.name()
		if err != nil {
			return err
		}
		return field(name)
	})
}

// members is object for whoever needs no names.
func (p *parser) members(field func() error) error {
	return p.within('{', '}', func() error {
		if p.peek() != '"' {
			return errText
		}
		if _, err := p.quoted(); err != nil {
			return err
		}
		if !p.take(':') {
			return errText
		}
		return field()
	})
}

func (p *parser) list(element func() error) error { return p.within('[', ']', element) }

// within has each part of an object or a list read.
func (p *parser) within(open, shut byte, part func() error) error {
	if !p.take(open) || p.depth == maxNesting {
		return errText
	}
	p.depth++
	defer func() { p.depth-- }()
	if p.take(shut) {
		return nil
	}
	for {
		if err := part(); err != nil {
			return err
		}
		if p.take(shut) {
			return nil
		}
		if !p.take(',') {
			return errText
		}
	}
}

// name reads the name of a field, and the colon.
func (p *parser) name() (string, error) {
	if p.peek() != '"' {
		return "", errText
	}
	token, err := p.quoted()
	if err != nil {
		return "", err
	}
	name, err := unquote(token, p.words.name)
	if err == nil && !p.take(':') {
		err = errText
	}
	return name, err
}

// quoted reads a string as it is written.
func (p *parser) quoted() ([]byte, error) {
	start := p.at
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return p.text[start:p.at], nil
		case c == '\\':
			if !p.escape() {
				return nil, errText
			}
		case c < ' ':
			return nil, errText
		}
	}
	return nil, errText
}

// escape passes over an escape but for its last byte.
func (p *parser) escape() bool {
	p.at++
	if p.at >= len(p.text) {
		return false
	}
	if p.text[p.at] != 'u' {
		return strings.IndexByte(`"\/bfnrt`, p.text[p.at]) >= 0
	}
	const digits = 4
	for range digits {
		p.at++
		if p.at >= len(p.text) || strings.IndexByte("0123456789abcdefABCDEF", p.text[p.at]) < 0 {
			return false
		}
	}
	return true
}

// unquote gives the text of a string. What is more than its bytes, the library reads.
func unquote(token []byte, intern func([]byte) string) (text string, err error) {
	plain := token[1 : len(token)-1]
	if bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return intern(plain), nil
	}
	if json.Unmarshal(token, &text) != nil {
		return "", errText
	}
	return text, nil
}

func (p *parser) literal(word string) error {
	if !bytes.HasPrefix(p.text[p.at:], []byte(word)) {
		return errText
	}
	p.at += len(word)
	return nil
}

// number reads a number as it is written.
func (p *parser) number() ([]byte, error) {
	start := p.at
	p.passOver("-")
	switch {
	case p.passOver("0"):
	case p.digits() == 0:
		return nil, errText
	}
	if p.passOver(".") && p.digits() == 0 {
		return nil, errText
	}
	if p.passOver("eE") {
		p.passOver("+-")
		if p.digits() == 0 {
			return nil, errText
		}
	}
	return p.text[start:p.at], nil
}

// passOver passes over one byte, if it is one of these.
func (p *parser) passOver(among string) bool {
	if p.at < len(p.text) && strings.IndexByte(among, p.text[p.at]) >= 0 {
		p.at++
		return true
	}
	return false
}

func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

// numberOf gives an integer where one holds the number, as the library does.
func numberOf(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, errText
	}
	return f, nil
}

// words are texts that come again and again, kept once: names of fields, and short
// values. What anybody may write is not kept without end.
type words struct{ names, values map[string]string }

const (
	// manyWords is how many of a kind are kept, longWord and longValue of how many bytes.
	manyWords = 2048
	longWord  = 64
	longValue = 24
)

func newWords() *words { return &words{names: map[string]string{}, values: map[string]string{}} }

func (w *words) name(text []byte) string { return intern(w.names, text, longWord) }

func (w *words) short(text []byte) string { return intern(w.values, text, longValue) }

func intern(known map[string]string, text []byte, long int) string {
	if len(text) > long {
		return string(text)
	}
	if word, ok := known[string(text)]; ok {
		return word
	}
	word := string(text)
	if len(known) < manyWords {
		known[word] = word
	}
	return word
}

// read has the parser read a text to its end.
func read[T any](w *words, text []byte, of func(*parser) (T, error)) (T, error) {
	p := parser{words: w, text: text}
	value, err := of(&p)
	if err == nil && (p.peek() != 0 || p.at < len(p.text)) {
		err = errText
	}
	return value, err
}

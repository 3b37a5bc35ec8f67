package watchjson

import (
	"bytes"
	"strings"
)

// maxNesting is the depth at which the parser stops; the library goes further.
const maxNesting = 1000

// parser reads JSON into the values that the library makes of it, but only where its caller asks
// for a value: the rest is checked and becomes nothing. Every text that the parser reads to
// the end, the library reads to the same value.
type parser struct {
	known *interned
	text  []byte
	at    int
	depth int
}

// peek returns the next byte that is no space, and 0 at the end.
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
		return unquote(token, p.known.value)
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

// skip checks a value and returns its text.
func (p *parser) skip() ([]byte, error) {
	first := p.peek()
	start := p.at
	var err error
	switch first {
	case '{':
		err = p.within('{', '}', func() error {
			if _, err := p.key(); err != nil {
				return err
			}
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

// object calls field for each field of an object; field reads the value.
func (p *parser) object(field func(name string) error) error {
	return p.within('{', '}', func() error {
		token, err := p.key()
		if err != nil {
			return err
		}
		name, err := unquote(token, p.known.name)
		if err != nil {
			return err
		}
		return field(name)
	})
}

func (p *parser) list(element func() error) error { return p.within('[', ']', element) }

// within calls part for each part of an object or a list.
func (p *parser) within(open, shut byte, part func() error) error {
	if !p.take(open) || p.depth == maxNesting {
		return errUnread
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
			return errUnread
		}
	}
}

// key returns the name of a field as the text has it, and reads the colon.
func (p *parser) key() ([]byte, error) {
	if p.peek() != '"' {
		return nil, errUnread
	}
	token, err := p.quoted()
	if err == nil && !p.take(':') {
		err = errUnread
	}
	return token, err
}

// quoted returns a string as the text has it, quotes included.
func (p *parser) quoted() ([]byte, error) {
	start := p.at
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return p.text[start:p.at], nil
		case c == '\\':
			if !p.escape() {
				return nil, errUnread
			}
		case c < ' ':
			return nil, errUnread
		}
	}
	return nil, errUnread
}

// escape stops at the last byte of an escape sequence.
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

func (p *parser) literal(word string) error {
	if !bytes.HasPrefix(p.text[p.at:], []byte(word)) {
		return errUnread
	}
	p.at += len(word)
	return nil
}

// number returns a number as the text has it.
func (p *parser) number() ([]byte, error) {
	start := p.at
	p.passOver("-")
	switch {
	case p.passOver("0"):
	case p.digits() == 0:
		return nil, errUnread
	}
	if p.passOver(".") && p.digits() == 0 {
		return nil, errUnread
	}
	if p.passOver("eE") {
		p.passOver("+-")
		if p.digits() == 0 {
			return nil, errUnread
		}
	}
	return p.text[start:p.at], nil
}

// passOver skips one byte if it is one of these, and reports whether it did.
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

// readAll reads a text to its end.
func readAll[T any](known *interned, text []byte, of func(*parser) (T, error)) (T, error) {
	p := parser{known: known, text: text}
	value, err := of(&p)
	if err == nil && (p.peek() != 0 || p.at < len(p.text)) {
		err = errUnread
	}
	return value, err
}

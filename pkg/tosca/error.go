package tosca

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is one mistake of a template or an archive. It never contains a value.
type Error struct {
	// File is empty for a template that stands alone, and for an archive as a whole.
	File string
	// Line is 0 if no single line has the mistake.
	Line int
	// Path is where it is: topology_template.node_templates.db.properties.spec.
	Path string
	// Message says what is wrong, and usually the way out.
	Message string

	cause error
}

// Error returns "definitions/entry.yaml:12: topology_template.inputs.a: ...".
func (e *Error) Error() string {
	text := e.Message
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	switch file := printable(e.File); {
	case file != "" && e.Line > 0:
		return fmt.Sprintf("%s:%d: %s", file, e.Line, text)
	case file != "":
		return file + ": " + text
	case e.Line > 0:
		return fmt.Sprintf("line %d: %s", e.Line, text)
	}
	return text
}

// Unwrap returns the error of the function that reads the files.
func (e *Error) Unwrap() error { return e.cause }

// maxMistakes is how many mistakes one error lists.
const maxMistakes = 10

// mistakes collects errors, and counts those beyond maxMistakes.
type mistakes struct {
	listed []error
	more   int
}

func (m *mistakes) add(err error) {
	switch {
	case err == nil:
	case len(m.listed) < maxMistakes:
		m.listed = append(m.listed, err)
	default:
		m.more++
	}
}

func (m *mistakes) err() error {
	if m.more > 0 {
		return errors.Join(append(m.listed, &Error{Message: fmt.Sprintf("and %d more", m.more)})...)
	}
	return errors.Join(m.listed...)
}

// maxName is how many bytes of a name an error repeats.
const maxName = 64

// shorten cuts a text to at most length bytes, at the start of a character.
func shorten(text string, length int) string {
	if len(text) <= length {
		return text
	}
	for length > 0 && !utf8.RuneStart(text[length]) {
		length--
	}
	return text[:length] + "..."
}

// quote returns a name as an error repeats it.
func quote(name string) string { return strconv.Quote(shorten(name, maxName)) }

// plain matches names that need no quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./@+-]*$`)

// printable returns a name without quotes if it needs none.
func printable(name string) string {
	if len(name) <= maxName && plain.MatchString(name) {
		return name
	}
	return quote(name)
}

// oneLine returns the message of a decoder in one line: it may repeat a long key.
func oneLine(err error) string {
	return shorten(strings.Join(strings.Fields(err.Error()), " "), 300)
}

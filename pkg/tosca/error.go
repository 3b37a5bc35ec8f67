package tosca

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is one mistake of a template or an archive. It never holds a value.
type Error struct {
	// File is empty for a template that stands alone, and for an archive as a whole.
	File string
	// Line is 0 if the mistake is in none.
	Line int
	// Path leads to it, as topology_template.node_templates.db.properties.spec.
	Path string
	// Message says what is wrong, and mostly the way out.
	Message string

	cause error
}

// Error gives "definitions/entry.yaml:12: topology_template.inputs.a: ...".
func (e *Error) Error() string {
	var text strings.Builder
	switch file := printable(e.File); {
	case file != "" && e.Line > 0:
		fmt.Fprintf(&text, "%s:%d: ", file, e.Line)
	case file != "":
		text.WriteString(file + ": ")
	case e.Line > 0:
		fmt.Fprintf(&text, "line %d: ", e.Line)
	}
	if e.Path != "" {
		text.WriteString(e.Path + ": ")
	}
	return text.String() + e.Message
}

// Unwrap gives what the function said that was asked for a file.
func (e *Error) Unwrap() error { return e.cause }

// maxMistakes is how many are told at once.
const maxMistakes = 10

// mistakes are those that were found.
type mistakes struct {
	told []error
	more int
}

func (m *mistakes) add(err error) {
	switch {
	case err == nil:
	case len(m.told) < maxMistakes:
		m.told = append(m.told, err)
	default:
		m.more++
	}
}

func (m *mistakes) err() error {
	if m.more > 0 {
		return errors.Join(append(m.told, &Error{Message: fmt.Sprintf("and %d more", m.more)})...)
	}
	return errors.Join(m.told...)
}

// maxName is how many bytes of a name an error repeats.
const maxName = 64

// shorten gives the beginning of a long text.
func shorten(text string, length int) string {
	if len(text) <= length {
		return text
	}
	for length > 0 && !utf8.RuneStart(text[length]) {
		length--
	}
	return text[:length] + "..."
}

// quote gives a name as an error repeats it.
func quote(name string) string { return strconv.Quote(shorten(name, maxName)) }

// plain are names that need no quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./@+-]*$`)

// printable gives a name without quotes, if it needs none.
func printable(name string) string {
	if len(name) <= maxName && plain.MatchString(name) {
		return name
	}
	return quote(name)
}

// oneLine gives what a decoder says, in one line and without the rest of a long key.
func oneLine(err error) string {
	return shorten(strings.Join(strings.Fields(err.Error()), " "), 300)
}

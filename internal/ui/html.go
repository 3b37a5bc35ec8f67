package ui

import (
	"html"
	"io"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/internal/lens"
)

// node is a part of a page. html/template is not used: it would link every method of every type of the
// program, which adds 10 MB to it (ADR 057).
type node interface{ write(out *strings.Builder) }

// text is escaped, and so are the characters that would be executed or change the direction.
type text string

func (t text) write(out *strings.Builder) {
	out.WriteString(html.EscapeString(lens.Visible(string(t))))
}

// verbatim is escaped, but keeps all characters: the browser sends it back. HTML drops a newline at the begin of
// a text area, so that there is one more.
type verbatim string

func (v verbatim) write(out *strings.Builder) {
	out.WriteByte('\n')
	out.WriteString(html.EscapeString(string(v)))
}

// attribute is a name with a value. The name is a constant of this package.
type attribute struct{ name, value string }

func (a attribute) write(out *strings.Builder) {
	out.WriteByte(' ')
	out.WriteString(a.name)
	out.WriteString(`="`)
	value := a.value
	if a.name == "title" || a.name == "aria-label" { // users see or hear it, and no program reads it
		value = lens.Visible(value)
	}
	out.WriteString(html.EscapeString(value))
	out.WriteByte('"')
}

type element struct {
	name       string
	attributes []attribute
	inner      []node
}

// all are several nodes.
type all []node

func (a all) write(out *strings.Builder) {
	for _, n := range a {
		if n != nil {
			n.write(out)
		}
	}
}

// el returns an element with attributes and nodes, in any order. Its name is a constant of this package.
func el(name string, parts ...node) element {
	e := element{name: name}
	for _, part := range parts {
		switch part := part.(type) {
		case attribute:
			e.attributes = append(e.attributes, part)
		case nil:
		default:
			e.inner = append(e.inner, part)
		}
	}
	return e
}

var void = []string{"input", "link", "meta"}

func (e element) write(out *strings.Builder) {
	out.WriteByte('<')
	out.WriteString(e.name)
	for _, a := range e.attributes {
		a.write(out)
	}
	out.WriteByte('>')
	if slices.Contains(void, e.name) {
		return
	}
	for _, n := range e.inner {
		n.write(out)
	}
	out.WriteString("</")
	out.WriteString(e.name)
	out.WriteByte('>')
}

func class(name string) attribute { return attribute{"class", name} }

func id(name string) attribute { return attribute{"id", name} }

func at(name, value string) attribute { return attribute{name, value} }

// when returns the node only under a condition.
func when(condition bool, n node) node {
	if condition {
		return n
	}
	return all(nil)
}

// rendered returns the HTML of a node.
func rendered(n node) string {
	var out strings.Builder
	n.write(&out)
	return out.String()
}

func writePage(out io.Writer, n node) error {
	_, err := io.WriteString(out, "<!doctype html>\n"+rendered(n))
	return err
}

// each returns a node for each value.
func each[T any](values []T, show func(T) node) all {
	nodes := make(all, 0, len(values))
	for _, value := range values {
		nodes = append(nodes, show(value))
	}
	return nodes
}

package tosca

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// place is a value in a file, with its path.
type place struct {
	*manifest.Tree

	file   string
	line   int // of its key, if it has one
	parent *place
	name   string // in its parent, or
	index  int    // if its parent is a list
	// literal: it is a default of an input, in which functions are not evaluated.
	literal bool
}

// child returns the place of a field.
func (p *place) child(field manifest.Field) *place {
	return &place{Tree: field.Tree, file: p.file, line: field.KeyLine, parent: p, name: field.Name, literal: p.literal}
}

// item returns the place of an item of a list.
func (p *place) item(i int) *place {
	return &place{Tree: p.Items[i], file: p.file, line: p.Items[i].Line, parent: p, index: i, literal: p.literal}
}

// fields iterates over the fields of a mapping in the order of the text. A nil place has none.
func (p *place) fields() iter.Seq2[string, *place] {
	return func(yield func(string, *place) bool) {
		for i := 0; p != nil && i < len(p.Fields); i++ {
			if !yield(p.Fields[i].Name, p.child(p.Fields[i])) {
				return
			}
		}
	}
}

// field returns the field of that name, or nil.
func (p *place) field(name string) *place {
	for _, field := range p.Fields {
		if field.Name == name {
			return p.child(field)
		}
	}
	return nil
}

// with returns the place with another value.
func (p *place) with(value any) *place {
	changed := *p
	changed.Tree = &manifest.Tree{Value: value, Line: p.Line}
	return &changed
}

// asLiteral returns the place with its functions not to be evaluated.
func (p *place) asLiteral() *place {
	changed := *p
	changed.literal = true
	return &changed
}

// isNull reports whether the field is absent or null.
func (p *place) isNull() bool { return p == nil || p.Value == nil }

func (p *place) isMapping() bool {
	_, ok := p.Value.(map[string]any)
	return ok
}

func (p *place) isList() bool {
	_, ok := p.Value.([]any)
	return ok
}

// text returns the text there, or "" for any other value and for a nil place.
func (p *place) text() string {
	if p == nil {
		return ""
	}
	text, _ := p.Value.(string)
	return text
}

// The functions of the language.
const (
	concat      = "concat"
	getInput    = "get_input"
	getProperty = "get_property"
)

// functionAt returns the function that is called at a place, with its argument, or no
// name. A call is a mapping with a single field.
func functionAt(p *place) (name string, argument *place) {
	if p.literal || len(p.Fields) != 1 {
		return "", nil
	}
	switch name := p.Fields[0].Name; name {
	case concat, getInput, getProperty, "get_attribute", "get_operation_output", "token":
		return name, p.child(p.Fields[0])
	}
	return "", nil
}

func (p *place) errorf(format string, args ...any) error {
	return &Error{File: p.file, Line: p.line, Path: p.path(), Message: fmt.Sprintf(format, args...)}
}

// unexpected returns the error of a value of another kind than the wanted one.
func (p *place) unexpected(wanted string) error {
	return p.errorf("%s, and %s is wanted", kindOf(p.Value), wanted)
}

// path returns the path from the top of the file.
func (p *place) path() string {
	var steps []string
	for ; p.parent != nil; p = p.parent {
		step := "[" + strconv.Itoa(p.index) + "]"
		switch {
		case p.parent.isList():
		case strings.ContainsAny(p.name, "./@+") || printable(p.name) != p.name || p.name == "":
			step = "[" + quote(p.name) + "]"
		case p.parent.parent != nil:
			step = "." + p.name
		default:
			step = p.name
		}
		steps = append(steps, step)
	}
	slices.Reverse(steps)
	return strings.Join(steps, "")
}

// kindOf names the kind of a value for errors, which must not repeat the value.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case []any:
		return "a list"
	}
	return "a mapping"
}

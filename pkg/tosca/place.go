package tosca

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// place is a value in a file, with the way to it.
type place struct {
	*manifest.Tree

	file   string
	line   int // that of its key, if it has one
	parent *place
	name   string // in its parent, or
	index  int    // if its parent is a list
	// literal: it is a default of an input, in which functions are not evaluated.
	literal bool
}

// child gives the field of an object.
func (p *place) child(field manifest.Field) *place {
	return &place{Tree: field.Tree, file: p.file, line: field.KeyLine, parent: p, name: field.Name, literal: p.literal}
}

// item gives the item of a list.
func (p *place) item(i int) *place {
	return &place{Tree: p.Items[i], file: p.file, line: p.Items[i].Line, parent: p, index: i, literal: p.literal}
}

// field gives the field of that name, or nil.
func (p *place) field(name string) *place {
	for _, field := range p.Fields {
		if field.Name == name {
			return p.child(field)
		}
	}
	return nil
}

// with gives the place with another value.
func (p *place) with(value any) *place {
	changed := *p
	changed.Tree = &manifest.Tree{Value: value, Line: p.Line}
	return &changed
}

// asLiteral gives the place with nothing in it to be evaluated.
func (p *place) asLiteral() *place {
	changed := *p
	changed.literal = true
	return &changed
}

// isEmpty tells if there is nothing, null, or a mapping without fields.
func (p *place) isEmpty() bool {
	return p == nil || p.Value == nil || p.isMapping() && len(p.Fields) == 0
}

// isMapping tells if there is one.
func (p *place) isMapping() bool {
	_, ok := p.Value.(map[string]any)
	return ok
}

// isList tells if there is one.
func (p *place) isList() bool {
	_, ok := p.Value.([]any)
	return ok
}

// text gives the text there, or none.
func (p *place) text() string {
	if p == nil {
		return ""
	}
	text, _ := p.Value.(string)
	return text
}

func (p *place) errorf(format string, args ...any) error {
	return &Error{File: p.file, Line: p.line, Path: p.path(), Message: fmt.Sprintf(format, args...)}
}

// path gives the way from the top of the file.
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
	var path strings.Builder
	for _, step := range slices.Backward(steps) {
		path.WriteString(step)
	}
	return path.String()
}

// kindOf tells what a value is, for errors, which must not repeat it.
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

package schema

import (
	"strconv"
	"strings"
)

// Path leads from the root of an object to a value in it.
type Path []Step

// Step is one step of a [Path]: into a field, whose Index is -1, or into the
// element of a list.
type Step struct {
	Field string
	Index int
}

const notAnIndex = -1

// String gives "spec.ports[0].port"; a field whose name holds a dot, a bracket
// or a slash is quoted: metadata.labels["app.kubernetes.io/name"].
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch {
		case step.Index != notAnIndex:
			b.WriteString("[" + strconv.Itoa(step.Index) + "]")
		case step.Field == "" || strings.ContainsAny(step.Field, ".[]/\""):
			b.WriteString("[" + strconv.Quote(step.Field) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step.Field)
		}
	}
	return b.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer gives the JSON Pointer (RFC 6901): "/spec/ports/0/port".
func (p Path) Pointer() string {
	var b strings.Builder
	for _, step := range p {
		b.WriteByte('/')
		if step.Index != notAnIndex {
			b.WriteString(strconv.Itoa(step.Index))
		} else {
			b.WriteString(pointerEscapes.Replace(step.Field))
		}
	}
	return b.String()
}

// valueAt gives what lies at the path, nil if there is nothing.
func valueAt(value any, path Path) any {
	for _, step := range path {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[step.Field]
		case []any:
			if step.Index < 0 || step.Index >= len(parent) {
				return nil
			}
			value = parent[step.Index]
		default:
			return nil
		}
	}
	return value
}

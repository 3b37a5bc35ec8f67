package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Path leads from the root of an object to a value in it.
type Path []Step

// Step is one step of a [Path]: into a field, with the Index -1, or into an element of a list.
type Step struct {
	Field string
	Index int
}

const notAnIndex = -1

// String returns "spec.ports[0].port". It quotes a field whose name contains a dot, a bracket or a
// slash: metadata.labels["app.kubernetes.io/name"].
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

// ParsePath reads the form of [Path.String], in which the quotes may be missing, and a dot may come first: API servers
// write metadata.labels[app.kubernetes.io/name]. A number in brackets without quotes is an index.
func ParsePath(text string) (Path, error) {
	var path Path
	for rest := strings.TrimPrefix(text, "."); rest != ""; {
		step, after, ok := cutStep(rest)
		if !ok {
			return nil, fmt.Errorf(`%q is no path: it is of the form spec.ports[0].port, or metadata.labels["app.kubernetes.io/name"]`, shortened(text))
		}
		path, rest = append(path, step), after
	}
	return path, nil
}

// MustParsePath is [ParsePath] for a path in the code.
func MustParsePath(text string) Path {
	path, err := ParsePath(text)
	if err != nil {
		panic(err)
	}
	return path
}

func cutStep(text string) (step Step, rest string, ok bool) {
	inner, isBracketed := strings.CutPrefix(text, "[")
	if !isBracketed {
		end := strings.IndexAny(text, ".[")
		if end < 0 {
			end = len(text)
		}
		return Step{Field: text[:end], Index: notAnIndex}, strings.TrimPrefix(text[end:], "."), end > 0
	}
	if quoted, err := strconv.QuotedPrefix(inner); err == nil {
		name, err := strconv.Unquote(quoted)
		rest, ok = strings.CutPrefix(inner[len(quoted):], "]")
		return Step{Field: name, Index: notAnIndex}, strings.TrimPrefix(rest, "."), err == nil && ok
	}
	inside, rest, ok := strings.Cut(inner, "]")
	rest = strings.TrimPrefix(rest, ".")
	if index, err := strconv.ParseUint(inside, 10, indexBits); err == nil {
		return Step{Index: int(index)}, rest, ok
	}
	return Step{Field: inside, Index: notAnIndex}, rest, ok && inside != ""
}

// Names returns the names of the fields on the path, without the indices.
func (p Path) Names() []string {
	var names []string
	for _, step := range p {
		if step.Index == notAnIndex {
			names = append(names, step.Field)
		}
	}
	return names
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer returns the JSON Pointer (RFC 6901): "/spec/ports/0/port".
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

// MarshalJSON returns an array of names and indices: ["spec","ports",0,"port"].
func (p Path) MarshalJSON() ([]byte, error) {
	steps := make([]any, 0, len(p))
	for _, step := range p {
		if step.Index != notAnIndex {
			steps = append(steps, step.Index)
		} else {
			steps = append(steps, step.Field)
		}
	}
	return json.Marshal(steps)
}

// UnmarshalJSON reads the form of MarshalJSON, and refuses any other.
func (p *Path) UnmarshalJSON(text []byte) error {
	var steps []json.RawMessage
	if err := json.Unmarshal(text, &steps); err != nil {
		return fmt.Errorf("read a path: %w", err)
	}
	path := make(Path, 0, len(steps))
	for i, text := range steps {
		step, err := readStep(text)
		if err != nil {
			return fmt.Errorf("read step %d of a path: %w", i, err)
		}
		path = append(path, step)
	}
	*p = path
	return nil
}

// indexBits fits into every int.
const indexBits = 31

func readStep(text []byte) (Step, error) {
	if text[0] == '"' {
		step := Step{Index: notAnIndex}
		err := json.Unmarshal(text, &step.Field)
		return step, err
	}
	index, err := strconv.ParseUint(string(text), 10, indexBits)
	if err != nil {
		return Step{}, fmt.Errorf("%s is neither a name nor an index", shortened(string(text)))
	}
	return Step{Index: int(index)}, nil
}

// ValueAt returns the value at the path of a document, or nil if there is none.
func ValueAt(value any, path Path) any {
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

// FieldPath returns the path through these fields.
func FieldPath(names ...string) Path {
	path := make(Path, 0, len(names))
	for _, name := range names {
		path = append(path, Step{Field: name, Index: notAnIndex})
	}
	return path
}

// below returns a new path that is one step longer. Below a nil path there is none.
func (p Path) below(step Step) Path {
	if p == nil {
		return nil
	}
	return append(slices.Clip(p), step)
}

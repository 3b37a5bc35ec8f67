package schema

import (
	"encoding/json"
	"fmt"
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

// MarshalJSON gives an array of names and indices: ["spec","ports",0,"port"].
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

// UnmarshalJSON reads what MarshalJSON gives, and nothing else.
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

// indexBits is for what every int can hold.
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

package lens

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// None is the text of an absent value.
const None = "<none>"

// Hidden stands for a value that is not shown.
const Hidden = "***"

// Redactor decides which values of a kind are shown. Values that may be secrets are shown only
// if the user asks for them (private).
type Redactor struct {
	Kind    string
	Private bool
}

// hides reports whether a value is not shown. Of a Secret only the identity is ever shown.
func (s Redactor) hides(path schema.Path, value any) bool {
	return value != nil && !IsIdentity(path) && (!s.Private || s.Kind == "Secret") && status.IsPrivate(s.Kind, path, value)
}

// Shown returns a value on one line, without its hidden parts.
func (s Redactor) Shown(path schema.Path, value any) string {
	_, value = s.Conceal(path, nil, value)
	return PlainText(value)
}

// PlainText returns a text unchanged, and any other value as JSON.
func PlainText(value any) string {
	text, isText := value.(string)
	switch {
	case value == nil:
		return None
	case isText && text != "":
		return text
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return Hidden
	}
	return string(encoded)
}

// Below returns the path of a field, or of an element, of what is at a path.
func Below(path schema.Path, field string, index int) schema.Path {
	return append(slices.Clip(path), schema.Step{Field: field, Index: index})
}

// IsBelow reports whether a path is equal to another one, or below it.
func IsBelow(path, above schema.Path) bool {
	return len(path) >= len(above) && slices.Equal(path[:len(above)], above)
}

// IsIdentity reports whether a field is of the identity of an object.
func IsIdentity(path schema.Path) bool {
	return len(path) <= 2 && slices.Contains([]string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}, path.String())
}

// Conceal hides the private values at a path before and after a change, and shows which of
// them differ.
func (s Redactor) Conceal(path schema.Path, before, after any) (hiddenBefore, hiddenAfter any) {
	return s.hide(path, before, after, " (before)"), s.hide(path, after, before, " (after)")
}

// hide hides the private values at a path, and marks those that the other value does not equal.
func (s Redactor) hide(path schema.Path, value, other any, mark string) any {
	switch value := value.(type) {
	case nil:
		return nil
	case map[string]any:
		others, _ := other.(map[string]any)
		fields := make(map[string]any, len(value))
		for name, field := range value {
			fields[name] = s.hide(Below(path, name, -1), field, others[name], mark)
		}
		return fields
	case []any:
		others, _ := other.([]any)
		others, _ = schema.Elements(others)
		elements, _ := schema.Elements(value)
		items := slices.Clone(value) // with the length of a projection
		for i, element := range elements {
			items[i] = s.hide(Below(path, "", i), element, ElementAt(others, i), mark)
		}
		return items
	}
	if IsComposite(other) { // of two shapes
		other = nil
	}
	switch {
	case !s.hides(path, value) && !s.hides(path, other):
		return value
	case other == nil || reflect.DeepEqual(value, other):
		return Hidden
	}
	return Hidden + mark
}

// IsComposite reports whether a value is an object or a list.
func IsComposite(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// ElementAt returns an element of a list, nil beyond its end.
func ElementAt(items []any, i int) any {
	if i < len(items) {
		return items[i]
	}
	return nil
}

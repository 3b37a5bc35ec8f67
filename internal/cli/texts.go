package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// hidden stands for a value that is not shown.
const hidden = "***"

// sight decides which values of a kind are shown. Values that may be secrets are shown only
// if the user asks for them (private).
type sight struct {
	kind    string
	private bool
}

// hides reports whether a value is not shown. Of a Secret only the identity is ever shown.
func (s sight) hides(path schema.Path, value any) bool {
	return value != nil && !isIdentity(path) && (!s.private || s.kind == "Secret") && status.IsPrivate(s.kind, path, value)
}

// shown returns a value on one line, without its hidden parts.
func (s sight) shown(path schema.Path, value any) string {
	_, value = s.conceal(path, nil, value)
	return plainText(value)
}

// plainText returns a text unchanged, and any other value as JSON.
func plainText(value any) string {
	text, isText := value.(string)
	switch {
	case value == nil:
		return none
	case isText && text != "":
		return text
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return hidden
	}
	return string(encoded)
}

// pathOf returns the path of fields.
func pathOf(fields ...string) schema.Path {
	var path schema.Path
	for _, name := range fields {
		path = below(path, name, -1)
	}
	return path
}

// below returns the path of a field, or of an element, of what is at a path.
func below(path schema.Path, field string, index int) schema.Path {
	return append(slices.Clip(path), schema.Step{Field: field, Index: index})
}

// isBelow reports whether a path is equal to another one, or below it.
func isBelow(path, above schema.Path) bool {
	return len(path) >= len(above) && slices.Equal(path[:len(above)], above)
}

func isIdentity(path schema.Path) bool {
	return slices.Contains([]string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}, path.String())
}

// conceal hides the private values at a path before and after a change, and shows which of
// them differ.
func (s sight) conceal(path schema.Path, before, after any) (hiddenBefore, hiddenAfter any) {
	return s.hide(path, before, after, " (before)"), s.hide(path, after, before, " (after)")
}

// hide hides the private values at a path, and marks those that the other value does not equal.
func (s sight) hide(path schema.Path, value, other any, mark string) any {
	switch value := value.(type) {
	case nil:
		return nil
	case map[string]any:
		others, _ := other.(map[string]any)
		fields := make(map[string]any, len(value))
		for name, field := range value {
			fields[name] = s.hide(below(path, name, -1), field, others[name], mark)
		}
		return fields
	case []any:
		others, _ := other.([]any)
		others, _ = schema.Elements(others)
		elements, _ := schema.Elements(value)
		items := slices.Clone(value) // with the length of a projection
		for i, element := range elements {
			items[i] = s.hide(below(path, "", i), element, elementAt(others, i), mark)
		}
		return items
	}
	if isComposite(other) { // of two shapes
		other = nil
	}
	switch {
	case !s.hides(path, value) && !s.hides(path, other):
		return value
	case other == nil || reflect.DeepEqual(value, other):
		return hidden
	}
	return hidden + mark
}

func isComposite(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func elementAt(items []any, i int) any {
	if i < len(items) {
		return items[i]
	}
	return nil
}

// legible returns a projection without the nulls and lengths that are for programs. For a
// list it adds how many elements are not observed.
func legible(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name, field := range value {
			fields[name] = legible(field)
		}
		return fields
	case []any:
		elements, length := schema.Elements(value)
		items := make([]any, 0, len(value))
		for _, element := range elements {
			if element != nil {
				items = append(items, legible(element))
			}
		}
		if more := length - len(items); more > 0 {
			items = append(items, "("+strconv.Itoa(more)+" more, not observed)")
		}
		return items
	}
	return value
}

// textOf returns an object as YAML, and nothing for one that is absent.
func textOf(object any) (string, error) {
	if object == nil {
		return "", nil
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("write an object as YAML: %w", err)
	}
	return string(text), nil
}

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

// sight is what is shown of the objects of a kind: no value that may be a secret, unless
// the user wants to see those, too.
type sight struct {
	kind    string
	private bool
}

// hides tells of values that are not shown. Those of a Secret never are, but for its
// identity.
func (s sight) hides(path schema.Path, value any) bool {
	return value != nil && !isIdentity(path) && (!s.private || s.kind == "Secret") && status.IsPrivate(s.kind, path, value)
}

// shown gives a value on one line, without what is hidden of it.
func shown(s sight, path schema.Path, value any) string {
	_, value = concealment{s, path}.pair(nil, value)
	return plainText(value)
}

// plainText gives a text as it is, and any other value as JSON.
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

// along goes a path, and gives nil where there is nothing.
func along(value any, path schema.Path) any {
	for _, step := range path {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[step.Field]
		case []any:
			value = elementAt(parent, step.Index)
		default:
			return nil
		}
	}
	return value
}

func isIdentity(path schema.Path) bool {
	return slices.Contains([]string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}, path.String())
}

// conceal hides the private values of an object before and after a change, and shows
// which of them are others then.
func conceal(s sight, before, after any) (hiddenBefore, hiddenAfter any) {
	return concealment{sight: s}.pair(before, after)
}

type concealment struct {
	sight

	path schema.Path
}

func (c concealment) pair(before, after any) (hiddenBefore, hiddenAfter any) {
	switch {
	case isAll[map[string]any](before, after):
		return c.objects(before, after)
	case isAll[[]any](before, after):
		return c.lists(before, after)
	case before == nil && after == nil:
		return nil, nil
	case isComposite(before) || isComposite(after): // of two shapes
		hiddenBefore, _ = c.pair(before, nil)
		_, hiddenAfter = c.pair(nil, after)
		return hiddenBefore, hiddenAfter
	case !c.hides(c.path, before) && !c.hides(c.path, after):
		return before, after
	case before == nil:
		return nil, hidden
	case after == nil:
		return hidden, nil
	case reflect.DeepEqual(before, after):
		return hidden, hidden
	}
	return hidden + " (before)", hidden + " (after)"
}

// isAll tells if both are of the type, or one of them, and the other is absent.
func isAll[T any](before, after any) bool {
	_, isBefore := before.(T)
	_, isAfter := after.(T)
	return isBefore && (isAfter || after == nil) || isAfter && before == nil
}

func isComposite(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// below is the same of one step further.
func (c concealment) below(field string, index int) concealment {
	c.path = append(slices.Clip(c.path), schema.Step{Field: field, Index: index})
	return c
}

func (c concealment) objects(before, after any) (hiddenBefore, hiddenAfter any) {
	from, hasFrom := before.(map[string]any)
	to, hasTo := after.(map[string]any)
	fromHidden, toHidden := make(map[string]any, len(from)), make(map[string]any, len(to))
	for name, value := range from {
		fromHidden[name], _ = c.below(name, -1).pair(value, to[name])
	}
	for name, value := range to {
		_, toHidden[name] = c.below(name, -1).pair(from[name], value)
	}
	return orNil(hasFrom, fromHidden), orNil(hasTo, toHidden)
}

// lists hides the elements, and not what a projection says of the length.
func (c concealment) lists(before, after any) (hiddenBefore, hiddenAfter any) {
	from, hasFrom := before.([]any)
	to, hasTo := after.([]any)
	fromElements, _ := schema.Elements(from)
	toElements, _ := schema.Elements(to)
	fromHidden, toHidden := slices.Clone(from), slices.Clone(to)
	for i := range fromElements {
		fromHidden[i], _ = c.below("", i).pair(fromElements[i], elementAt(toElements, i))
	}
	for i := range toElements {
		_, toHidden[i] = c.below("", i).pair(elementAt(fromElements, i), toElements[i])
	}
	return orNil(hasFrom, fromHidden), orNil(hasTo, toHidden)
}

func elementAt(items []any, i int) any {
	if i < len(items) {
		return items[i]
	}
	return nil
}

func orNil(has bool, value any) any {
	if has {
		return value
	}
	return nil
}

// legible gives a projection without the nulls and lengths by which programs know it:
// of a list it says how many elements there are that are not observed.
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

// textOf gives an object as YAML, and nothing for one that is absent.
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

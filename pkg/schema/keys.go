package schema

import (
	"slices"
	"strconv"
	"strings"
)

// Key is a field that distinguishes the elements of a list: a merge key of the API.
type Key struct {
	Name string
	// Default is the value for an element without the field ("protocol: TCP").
	Default any
	// KeepsZero reports that a zero is a value. Where there is a default, it else counts as absent, as
	// a field of a Go type that omits it.
	KeepsZero bool
}

type keys []Key

// of returns the same fields as keys of a list of the type t.
func (k keys) of(t Type) keys {
	typed := make(keys, 0, len(k))
	for _, key := range k {
		typed = append(typed, t.Key(key.Name))
	}
	return typed
}

// known reports whether an element has its whole key. Fields with a default may be absent, and all
// others must have a plain value. An element with a partial key would become another one as soon as
// the server adds the other fields.
func (k keys) known(element any) bool {
	fields, ok := element.(map[string]any)
	for _, key := range k {
		switch key.of(fields).(type) {
		case nil, map[string]any, []any:
			return false
		}
	}
	return ok && len(k) > 0
}

// partly reports whether an element has a part of its key, or the whole key, and no field that cannot be one.
func (k keys) partly(element any) bool {
	fields, _ := element.(map[string]any)
	missing := k.missing(element)
	for _, key := range missing {
		if fields[key.Name] != nil {
			return false
		}
	}
	return len(missing) < len(k)
}

// missing returns the fields of its key that an element does not have as plain values.
func (k keys) missing(element any) keys {
	return slices.DeleteFunc(slices.Clone(k), func(key Key) bool { return keys{key}.known(element) })
}

func (k keys) allKnown(elements []any) bool {
	for _, element := range elements {
		if !k.known(element) {
			return false
		}
	}
	return true
}

// names returns "name" or "containerPort, protocol".
func (k keys) names() string {
	names := make([]string, 0, len(k))
	for _, key := range k {
		names = append(names, key.Name)
	}
	return strings.Join(names, ", ")
}

// distinct reports whether all elements have different keys.
func (k keys) distinct(elements []any) bool {
	seen := make(map[string]bool, len(elements))
	for _, element := range elements {
		if !k.known(element) {
			continue
		}
		key := k.text(element)
		if seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// same reports whether two elements have the same key.
func (k keys) same(a, b any) bool {
	if !k.known(b) {
		return false
	}
	left, _ := a.(map[string]any)
	right, _ := b.(map[string]any)
	for _, key := range k {
		if !equal(key.of(left), key.of(right)) {
			return false
		}
	}
	return true
}

// of returns the value of the field, or its default.
func (k Key) of(element map[string]any) any {
	value := element[k.Name]
	isZero := !k.KeepsZero && (value == "" || equal(value, int64(0)))
	if k.Default != nil && (value == nil || isZero) {
		return k.Default
	}
	return value
}

// text is equal for two elements if and only if they have the same key.
func (k keys) text(element any) string {
	fields, _ := element.(map[string]any)
	var b strings.Builder
	for _, key := range k {
		b.WriteString(scalarText(key.of(fields)))
		b.WriteByte(',')
	}
	return b.String()
}

func scalarText(value any) string {
	switch value := value.(type) {
	case string:
		return strconv.Quote(value)
	case bool:
		return strconv.FormatBool(value)
	case int64:
		return strconv.FormatInt(value, 10)
	case float64:
		if i := int64(value); equalNumbers(i, value) {
			return strconv.FormatInt(i, 10)
		}
		return strconv.FormatFloat(value, 'g', -1, 64)
	}
	return ""
}

// with returns a value, extended by the key of the element that it comes from.
func (k keys) with(value, element any) any {
	fields, ok := value.(map[string]any)
	from, _ := element.(map[string]any)
	if !ok {
		return value
	}
	for _, key := range k {
		if plain := from[key.Name]; plain != nil && fields[key.Name] == nil {
			fields[key.Name] = clone(plain)
		}
	}
	return fields
}

package schema

import "slices"

// ByValue returns the schema for an object of an unknown type: a null within a value equals an absent
// one. A text is not a number: "0474915" and 474915, or "500m" and 0.5, may mean the same only where a
// type says so, and an API server stores custom resources as they were written. Labels and annotations
// are compared as they are.
func (s Schema) ByValue() Schema {
	fields := slices.Clone(s.root.fields)
	for i, f := range fields {
		if f.name != "metadata" {
			fields[i].node = byValue(f.node)
		}
	}
	s.root = s.root.with(fields)
	return s
}

func byValue(n node) node {
	switch n := n.(type) {
	case leaf:
		n.byValue = true
		return n
	case object:
		fields := slices.Clone(n.fields)
		for i := range fields {
			fields[i].node = byValue(fields[i].node)
		}
		return n.with(fields)
	case list:
		n.items = slices.Clone(n.items)
		for i := range n.items {
			n.items[i] = byValue(n.items[i])
		}
		return n
	}
	return n
}

// sameValue compares values that are not [equal].
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && sameFields(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	}
	return equal(a, b)
}

func sameFields(a, b map[string]any) bool {
	for name, value := range b {
		if value != nil && a[name] == nil {
			return false
		}
	}
	for name, value := range a {
		if value != nil && !sameValue(value, b[name]) {
			return false
		}
	}
	return true
}

package schema

import "slices"

// Type describes an API's type of the values at one place. A nil Type is unknown.
type Type interface {
	// Field is the type of an object's field.
	Field(name string) Type
	// Element is the type of a list's elements.
	Element() Type
	// Keys are the merge keys of a list (x-kubernetes-list-map-keys). There are none if its
	// elements have no key.
	Keys() []Key
}

// KeysAt returns the merge keys of the list at a path, in a value of the type t.
func KeysAt(t Type, path Path) []Key {
	for _, step := range path {
		switch {
		case t == nil:
			return nil
		case step.Index == notAnIndex:
			t = t.Field(step.Field)
		default:
			t = t.Element()
		}
	}
	if t == nil {
		return nil
	}
	return t.Keys()
}

// Align returns the schema with the merge keys of the API: it finds the elements of such lists by
// key, at any index. Keys that the user has set take precedence.
//
// An element without a partner is no difference of its own: the length decides. The minimum counts
// the desired elements that are present, or only those of the manifest if it has any. The maximum
// counts all elements. Surplus elements are cut, beginning with those that are not desired. A place
// of the schema beyond the desired elements takes the next remaining element. The order of elements
// does not matter.
//
// A list is aligned by index if any of its desired elements lacks the key.
func (s Schema) Align(t Type) Schema {
	if root, ok := align(s.root, t).(object); ok {
		s.root = root
	}
	return s
}

func align(n node, t Type) node {
	if t == nil {
		return n
	}
	switch n := n.(type) {
	case object:
		fields := make([]field, 0, len(n.fields))
		for _, f := range n.fields {
			fields = append(fields, field{f.name, align(f.node, t.Field(f.name))})
		}
		return object{fields: fields}
	case list:
		items := make([]node, 0, len(n.items))
		for _, item := range n.items {
			items = append(items, align(item, t.Element()))
		}
		n.items = items
		if n.stated == nil {
			n.keys = slices.Clone(t.Keys())
		}
		return n
	}
	return n
}

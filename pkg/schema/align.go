package schema

import "slices"

// Type is what an API says of the values at one place. A nil Type says nothing.
type Type interface {
	// Field is the type of an object's field.
	Field(name string) Type
	// Element is the type of a list's elements.
	Element() Type
	// Keys are the merge keys of a list (x-kubernetes-list-map-keys), none if
	// its elements have no key.
	Keys() []Key
}

// Align gives the schema with the merge keys of the API: the elements of such
// lists are found by key, wherever they are. Keys that the user has stated win.
//
// An element without a partner is not missed as such: the length decides. The
// minimum counts the desired elements that are there, those of the manifest if
// there are any; the maximum counts all; what is too much is cut from the
// elements that nobody asked for. A place of the schema beyond the desired
// elements takes the next element that is left. The order of elements does not
// count.
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

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
	// Key is a field of a list's elements, as a part of their key.
	Key(name string) Key
	// Structure is how the API treats the parts of an object or a list.
	Structure() Structure
}

// Structure is how an API treats the parts of a value, as in x-kubernetes-list-type and
// x-kubernetes-map-type.
type Structure int

const (
	// Plain values have no parts, or are of an unknown type.
	Plain Structure = iota
	// Struct is an object with known fields, which have one writer each.
	Struct
	// Map is an object with any fields, which have one writer each.
	Map
	// AtomicMap is an object with one writer.
	AtomicMap
	// AtomicList is a list with one writer. Its order is a part of the value.
	AtomicList
	// KeyedList is a list whose elements have keys. Each has one writer.
	KeyedList
	// SetList is a list of different values in no order.
	SetList
)

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

// Align returns the schema for objects as Kubernetes treats them. t is the type of the resource,
// nil if it is unknown.
//
//   - The elements of a list with merge keys are found by key. Keys that the user has set take
//     precedence, with the defaults of t. The elements of a set are found by their value.
//   - In all other lists, elements that match what is desired are found first: the longest common
//     subsequence, then those that have moved. What then remains between two of them is compared by
//     place.
//   - The relative order of the observed elements counts, except in a set. Other elements may stand
//     anywhere between them. A missing element is inserted behind the one that it follows.
//   - In a list with keys, a second element with the key of a desired one is always surplus.
//
// An element without a partner is no difference of its own: the length decides. The minimum counts
// the desired elements that are present, or only those of the manifest if it has any. The maximum
// counts all elements. Surplus elements are cut, beginning with those that are not desired. A place
// of the schema beyond the desired elements takes the next remaining element.
//
// In a default schema, these values are closed, so that nothing else may stand in them, except
// what was accepted (see [Schema.Accept]): an empty list, an empty object with known fields, an
// object with one writer, and each element of a list without keys. Such an element is restored as a
// whole. A closed object may not be absent, and neither may an empty object or list of a known type.
func (s Schema) Align(t Type) Schema {
	if root, ok := align(s.root, t, false).(object); ok {
		s.root = root
	}
	return s
}

// alignment is the way in which the elements of a list are found.
type alignment int

const (
	// literal finds elements by index, or by the user's keys in any order.
	literal alignment = iota
	// inOrder finds elements by key, if the list has keys, or else by what they have in common with
	// the desired ones. Their order counts.
	inOrder
	// inNoOrder finds the elements of a set.
	inNoOrder
)

// align refines a node. atomic reports that the value is a part of one that has one writer.
func align(n node, t Type, atomic bool) node {
	structure := Plain
	if t != nil {
		structure = t.Structure()
	}
	switch n := n.(type) {
	case object:
		atomic = atomic || structure == AtomicMap
		n.closed = n.isDefault && (atomic || len(n.fields) == 0 && structure == Struct)
		n.isKept = n.isDefault && len(n.fields) == 0 && t != nil
		fields := make([]field, 0, len(n.fields))
		for _, f := range n.fields {
			fields = append(fields, field{f.name, align(f.node, fieldType(t, f.name), atomic)})
		}
		return n.with(fields)
	case list:
		return alignList(n, t, structure, atomic)
	}
	return n
}

func alignList(n list, t Type, structure Structure, atomic bool) list {
	n.keys = keysOf(n, t)
	n.alignment = inOrder
	if structure == SetList {
		n.alignment = inNoOrder
	}
	items := make([]node, 0, len(n.items))
	for _, item := range n.items {
		items = append(items, align(item, elementType(t), atomic || structure != KeyedList))
	}
	n.items = items
	n.isKept = n.isDefault && len(items) == 0 && t != nil
	return n
}

// keysOf returns the keys of a list, stated or of its type.
func keysOf(n list, t Type) keys {
	switch {
	case t == nil:
		return n.keys
	case n.stated == nil:
		return slices.Clone(t.Keys())
	}
	return n.keys.of(t)
}

func fieldType(t Type, name string) Type {
	if t == nil {
		return nil
	}
	return t.Field(name)
}

func elementType(t Type) Type {
	if t == nil {
		return nil
	}
	return t.Element()
}

package schema

import (
	"slices"
	"strings"
)

// node is one of leaf, constant, object and list: a walker is one switch.
type node any

type (
	// leaf is a value that is observed as a whole.
	leaf struct {
		// namespace marks metadata.namespace. A cluster-scoped object does not have it, even if its
		// manifest does.
		namespace bool
		// byValue: see [Schema.ByValue].
		byValue bool
		forms   forms
	}
	// constant is a part of the identity: it is known, and never differs.
	constant struct{ value string }
	// object has schemas of named fields, sorted by name.
	object struct {
		fields []field
		// isDefault reports that the object is part of a default schema.
		isDefault bool
		// closed reports that no other fields may stand in the object, see [Schema.Align].
		closed bool
		// isKept reports that the object is empty, and may not be absent, see [Schema.Align].
		isKept bool
		// forms are the accepted fields of a closed object, and whether an object may be absent.
		forms forms
	}
	// list has schemas of its first elements.
	list struct {
		items []node
		// min and max bound the length of the whole list; max 0 is no bound.
		min, max int
		// keys identify the elements. Without keys, the index does, or the order if alignment says so.
		keys keys
		// alignment is literal until [Schema.Align].
		alignment alignment
		// isDefault reports that the list is part of a default schema: it has exactly the elements of
		// the manifest, also if that are none.
		isDefault bool
		// isKept reports that the list is empty, and may not be absent, see [Schema.Align].
		isKept bool
		// stated is the user's text of the keys. If nil, they are the API's, and not part of the
		// document.
		stated any
		// given is the number of elements in the manifest, as far as it matters: desired elements
		// beyond them were learned.
		given int
		// forms are the accepted forms of the length, and whether an empty list may be absent.
		forms forms
	}
)

type field struct {
	name string
	node node
}

// find returns the index of the field, or the index to insert it at.
func (o object) find(name string) (int, bool) {
	return slices.BinarySearchFunc(o.fields, name, func(f field, name string) int {
		return strings.Compare(f.name, name)
	})
}

func newObject(fields []field) object {
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return object{fields: fields}
}

// with returns the object with other fields.
func (o object) with(fields []field) object {
	o.fields = fields
	return o
}

// nodeAt returns the node at the path, or nil if the schema does not observe it.
func nodeAt(n node, path Path) node {
	for _, step := range path {
		n = child(n, step)
	}
	return n
}

// child returns the node one step below, or nil if the schema does not observe it.
func child(n node, step Step) node {
	switch n := n.(type) {
	case object:
		if at, found := n.find(step.Field); found && step.Index == notAnIndex {
			return n.fields[at].node
		}
	case list:
		if step.Index >= 0 && step.Index < len(n.items) {
			return n.items[step.Index]
		}
	}
	return nil
}

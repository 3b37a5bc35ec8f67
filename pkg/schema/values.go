package schema

import "slices"

// Value is one observed value, as it is desired and as an object has it. The identity
// is none.
type Value struct {
	// Path leads to it in the live object; it is nil where that lacks the element of a
	// list in which the value would be. Place leads to it in the desired object: in a
	// list that is aligned by key, they differ.
	Path, Place Path
	// Want and Have are nil where there is nothing. They are shared with the objects.
	Want, Have any
}

// Values gives the observed values in the order of the schema, those too that neither
// of the objects has. Where a value has not the shape of the schema, that is one value.
// Of a place of a list that neither of them has, there is none.
func (s Schema) Values(desired, live map[string]any) []Value {
	var v valuation
	v.node(s.root, Path{}, Path{}, desired, live)
	return v.found
}

// valuation walks the schema, with the ways through both objects.
type valuation struct{ found []Value }

func (v *valuation) add(path, place Path, want, have any) {
	v.found = append(v.found, Value{Path: path, Place: place, Want: want, Have: have})
}

func (v *valuation) node(n node, path, place Path, want, have any) {
	switch n := n.(type) {
	case leaf:
		v.add(path, place, want, have)
	case object:
		v.object(n, path, place, want, have)
	case list:
		v.list(n, path, place, want, have)
	}
}

func (v *valuation) object(n object, path, place Path, want, have any) {
	wanted, wantOK := want.(map[string]any)
	fields, haveOK := have.(map[string]any)
	if want != nil && !wantOK || have != nil && !haveOK {
		v.add(path, place, want, have)
		return
	}
	for _, f := range n.fields {
		step := Step{Field: f.name, Index: notAnIndex}
		v.node(f.node, path.below(step), place.below(step), wanted[f.name], fields[f.name])
	}
}

func (v *valuation) list(n list, path, place Path, want, have any) {
	wanted, wantOK := want.([]any)
	elements, haveOK := have.([]any)
	if want != nil && !wantOK || have != nil && !haveOK {
		v.add(path, place, want, have)
		return
	}
	var room scratch
	pairs := n.pair(wanted, elements, &room)
	for i, item := range n.items {
		inner, partner := place.below(Step{Index: i}), pairs.partner(i)
		switch {
		case partner != absent:
			v.node(item, path.below(Step{Index: partner}), inner, at(wanted, i), elements[partner])
		case i < len(wanted):
			v.node(item, nil, inner, wanted[i], nil)
		}
	}
}

// below is a path of its own, one step further; below what is not there, nothing is.
func (p Path) below(step Step) Path {
	if p == nil {
		return nil
	}
	return append(slices.Clip(p), step)
}

// Elements splits a list of a projection into its observed elements and the length of
// the whole list.
func Elements(projected []any) (elements []any, length int) { return lengthOf(projected) }

package schema

// Value is one observed value, as desired and as in an object. The identity is not among the
// values.
type Value struct {
	// Path is its path in the live object, nil if the live object lacks the list element with the
	// value. Place is its path in the desired object. The two differ in a list that is aligned by
	// key.
	Path, Place Path
	// Want and Have are nil if absent. They are shared with the objects.
	Want, Have any
}

// Values returns the observed values in the order of the schema, including values that neither
// object has. A value of another shape than the schema's is one value. A place of a list that
// neither object has is omitted.
func (s Schema) Values(desired, live map[string]any) []Value {
	var v valuation
	v.node(s.root, Path{}, Path{}, desired, live)
	return v.found
}

// valuation walks the schema, with the paths in both objects.
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

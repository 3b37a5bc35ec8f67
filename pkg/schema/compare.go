package schema

import "slices"

// Compare returns the differences between the observed fields of a live object and the desired ones
// (Krake documentation, Application controller, step 4). Without a difference it allocates nothing, with two exceptions. One is a
// long list that is aligned by key and out of order. The other is a value in another form
// ([Schema.ByValue]). The result shares values with the arguments. released are the elements of [Schema.Released]
// for the same objects, which are surplus.
func (s Schema) Compare(desired, live map[string]any, released ...Difference) Differences {
	c := comparison{released: released}
	return c.compare(s.root, desired, live)
}

// CompareProjection is [Schema.Compare] with the result of [Schema.Project] for the same desired
// object instead of the live one. The differences have no Cut, because only the live object shows
// which elements to remove.
func (s Schema) CompareProjection(desired, projection map[string]any) Differences {
	c := comparison{projected: true}
	return c.compare(s.root, desired, projection)
}

// Displace is [Schema.Compare] for an API that refuses missing elements beside the present ones.
// Examples are the second port of a Service without port names, or two ports with the same name.
// Each missing element replaces an undesired element: the one with most fields in common, because a
// client may have changed its key. The difference is TooShort and has a Cut.
func (s Schema) Displace(desired, live map[string]any, released ...Difference) Differences {
	c := comparison{displaces: true, released: released}
	return c.compare(s.root, desired, live)
}

// comparison walks the schema. It makes paths only on the way back from a difference, so that a
// walk without differences allocates nothing. Until the end, the last step of a path is first.
type comparison struct {
	found Differences
	// projected reports that the object is a projection.
	projected bool
	// places reports that indices have to be those of the desired elements. Each value is then
	// visited, also in absent objects.
	places bool
	// displaces reports that missing elements replace others.
	displaces bool
	// absent reports that an object around this place is absent, and will be created as a whole.
	absent bool
	// released are lists with elements to remove. at is the path of this place, if there are any.
	released Differences
	at       Path
}

func (c *comparison) compare(root object, desired, have map[string]any) Differences {
	c.node(root, desired, have)
	for _, difference := range c.found {
		slices.Reverse(difference.Path)
		for _, part := range difference.Parts {
			slices.Reverse(part.Path)
		}
	}
	return c.found
}

func (c *comparison) add(kind Kind, want, have any) {
	c.found = append(c.found, Difference{Kind: kind, Want: want, Have: have})
}

// step walks into a field or an element.
func (c *comparison) step(step Step, n node, want, have any) {
	before := len(c.found)
	if len(c.released) > 0 {
		c.at = append(c.at, step)
		defer func() { c.at = c.at[:len(c.at)-1] }()
	}
	c.node(n, want, have)
	for i := before; i < len(c.found); i++ {
		c.found[i].Path = append(c.found[i].Path, step)
		for j := range c.found[i].Parts {
			part := &c.found[i].Parts[j]
			part.Path = append(part.Path, step)
		}
	}
}

func (c *comparison) node(n node, want, have any) {
	switch n := n.(type) {
	case constant:
	case leaf:
		if have != nil || !n.namespace {
			c.leaf(n, want, have)
		}
	case object:
		c.object(n, want, have)
	case list:
		c.list(n, want, have)
	}
}

func (c *comparison) leaf(n leaf, want, have any) {
	if !n.isAlike(want, have) {
		c.value(want, have)
	}
}

// isAlike reports whether the value is accepted in place of the desired one.
func (n leaf) isAlike(want, have any) bool {
	return n.forms.has(want, have) || n.byValue && want != nil && have != nil && sameValue(want, have)
}

// value compares two values as a whole.
func (c *comparison) value(want, have any) {
	switch {
	case want == nil && have == nil:
	case want == nil:
		c.add(Unknown, nil, have)
	case have == nil || !equal(want, have):
		c.add(Changed, want, have)
	}
}

func (c *comparison) object(n object, want, have any) {
	wanted, wantOK := want.(map[string]any)
	fields, haveOK := have.(map[string]any)
	isMissed := wantOK && have == nil && !n.mayBeAbsent()
	switch {
	case want != nil && !wantOK, want == nil && have != nil && !haveOK:
		c.value(want, have)
		return
	case have != nil && !haveOK, isMissed:
		c.add(Changed, restrict(n, want, creation), have)
		return
	}
	c.fields(n, wanted, fields, have == nil)
}

// fields compares the fields of an object.
func (c *comparison) fields(n object, wanted, fields map[string]any, isAbsent bool) {
	before, outermost := len(c.found), isAbsent && !c.absent && !c.places
	c.absent = c.absent || outermost
	for _, f := range n.fields {
		c.step(Step{Field: f.name, Index: notAnIndex}, f.node, wanted[f.name], fields[f.name])
	}
	if n.closed && wanted != nil {
		c.foreign(n, fields)
	}
	if !outermost {
		return
	}
	c.absent = false
	// An absent object is created as a whole: a JSON Patch cannot add below an absent value. If no
	// value is known, the children remain as differences that no patch can remove.
	if slices.ContainsFunc(c.found[before:], Difference.mendable) {
		c.found = c.found[:before]
		c.add(Changed, restrict(n, wanted, creation), nil)
	}
}

// foreign finds the fields that may not stand in a closed object.
func (c *comparison) foreign(n object, fields map[string]any) {
	if n.hasAll(fields) {
		return
	}
	for _, name := range sortedNames(fields) {
		if n.isForeign(name, fields[name]) {
			c.add(Changed, nil, fields[name])
			c.found[len(c.found)-1].Path = Path{{Field: name, Index: notAnIndex}}
		}
	}
}

func (c *comparison) list(n list, want, have any) {
	wanted, wantOK := want.([]any)
	elements, haveOK := have.([]any)
	switch {
	case want != nil && !wantOK, want == nil && have != nil && !haveOK:
		c.value(want, have)
		return
	case have != nil && !haveOK, n.isMissed(want, have):
		c.add(Changed, want, have)
		return
	}
	var room scratch
	var pairs pairing
	length := len(elements)
	if c.projected {
		elements, length = Elements(elements)
		pairs = n.project(wanted, elements)
	} else {
		pairs = n.pair(wanted, elements, &room)
	}
	pairs.released = c.releasedHere()
	size := n.measure(wanted, elements, length, pairs)
	for place := range min(len(n.items), size.places) {
		if partner := pairs.partner(place); partner != absent {
			c.element(Step{Index: c.index(place, partner)}, n.items[place], at(wanted, place), elements[partner])
		}
	}
	if n.alignment != literal && !c.projected {
		c.arrangement(n, size, pairs, wanted, elements, have)
		return
	}
	if size.short {
		c.add(TooShort, pairs.missing(wanted, length), have)
	}
	c.cut(n, size, pairs, wanted, elements, have)
}

// releasedHere returns the elements of the list at this place that have left the spec.
func (c *comparison) releasedHere() []int {
	for _, difference := range c.released {
		if slices.Equal(difference.Path, c.at) {
			return difference.Cut
		}
	}
	return nil
}

// arrangement finds what a list has to gain and to lose, and what has to move. That is one
// difference, because each changes the indices of the others.
func (c *comparison) arrangement(n list, size size, pairs pairing, wanted, elements []any, have any) {
	d := Difference{Have: have}
	switch {
	case size.short:
		d.Kind, d.Want = TooShort, pairs.missing(wanted, len(elements))
	case size.long:
		d.Kind = TooLong
	case n.isMoved(pairs, wanted):
		d.Kind = Moved
	default:
		return
	}
	if size.long {
		d.Cut = pairs.cut(size)
	} else if size.short && c.displaces && n.byKey(wanted) {
		d.Cut = pairs.displaced(wanted, elements)
		d.Displaces = len(d.Cut) > 0
	}
	if wanted != nil {
		n.arrange(&d, pairs, wanted)
	}
	c.found = append(c.found, d)
}

// cut sets the elements to remove from a list.
func (c *comparison) cut(n list, size size, pairs pairing, wanted, elements []any, have any) {
	switch {
	case size.long:
		c.add(TooLong, nil, have)
		if !c.projected {
			c.found[len(c.found)-1].Cut = pairs.cut(size)
		}
	case size.short && c.displaces && n.byKey(wanted):
		d := &c.found[len(c.found)-1]
		d.Cut = pairs.displaced(wanted, elements)
		d.Displaces = len(d.Cut) > 0
	}
}

// element compares one element of a list. One more element than desired has to be learned, whether
// or not one of its fields is observed.
func (c *comparison) element(step Step, n node, want, have any) {
	before := len(c.found)
	c.step(step, n, want, have)
	if element, ok := n.(object); ok && element.closed && !c.places && !c.projected {
		if parts := slices.Clone(c.found[before:].Drift()); len(parts) > 0 {
			c.found = append(c.found[:before], Difference{
				Path: Path{step}, Kind: Changed, Want: want, Have: have, Parts: parts.Details(),
			})
			return
		}
	}
	if len(c.found) == before && want == nil && have != nil {
		c.add(Unknown, nil, have)
		c.found[before].Path = Path{step}
	}
}

func (c *comparison) index(place, partner int) int {
	if c.places {
		return place
	}
	return partner
}

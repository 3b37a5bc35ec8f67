package schema

import "slices"

// Kind says what a [Difference] is, and so what becomes of it.
type Kind string

const (
	// Changed: the value at the path is not, or is no longer, the desired one. If
	// none is desired, it is to be removed; only [Schema.Released] gives such.
	Changed Kind = "Changed"
	// TooShort: the list at the path has fewer elements than its minimum.
	TooShort Kind = "TooShort"
	// TooLong: the list at the path has more elements than its maximum.
	TooLong Kind = "TooLong"
	// Unknown: the value is observed, but no desired value is known yet. It is
	// to be learned by [Schema.LateInitialize]; there is nothing to revert.
	Unknown Kind = "Unknown"
)

// Difference is one place where an object is not as it should be.
type Difference struct {
	Path Path
	Kind Kind
	// Want is the desired value. Of an absent object it is the observed part,
	// with lists as long as they must be; for TooShort it is the []any of
	// elements to append; otherwise, where it is nil, no value can be given.
	Want any
	// Have is the value of the object, nil if it is absent.
	Have any
	// Cut are the indices of the elements to remove, ascending: for TooLong, and for
	// TooShort those that make room for the missing ones (see [Schema.Displace]).
	Cut []int
}

// Differences of one object, in the order of the schema: a list after its elements.
type Differences []Difference

// Drift gives the differences that are to be reverted. Of those, [Differences.Patch]
// leaves out what no patch can mend: a length that the desired list violates itself.
func (d Differences) Drift() Differences {
	return d.filter(func(difference Difference) bool { return difference.Kind != Unknown })
}

// Unknown gives the differences that are to be learned.
func (d Differences) Unknown() Differences {
	return d.filter(func(difference Difference) bool { return difference.Kind == Unknown })
}

func (d Differences) filter(keep func(Difference) bool) Differences {
	var kept Differences
	for _, difference := range d {
		if keep(difference) {
			kept = append(kept, difference)
		}
	}
	return kept
}

// Compare gives the differences between the observed fields of a live object
// and the desired ones (specification 1.6). Without a difference it allocates
// nothing, unless a list that is aligned by key is both long and out of order, or
// a value is compared with one that is written otherwise ([Schema.ByValue]).
// The values in the result are shared with the arguments.
func (s Schema) Compare(desired, live map[string]any) Differences {
	return s.compare(desired, live, false)
}

// CompareProjection is [Schema.Compare] with what [Schema.Project] gave for the
// same desired and the live object in its place. What a list is to be cut by
// only the live object can tell.
func (s Schema) CompareProjection(desired, projection map[string]any) Differences {
	return s.compare(desired, projection, true)
}

func (s Schema) compare(desired, have map[string]any, projected bool) Differences {
	c := comparison{projected: projected}
	return c.compare(s, desired, have)
}

func (c *comparison) compare(s Schema, desired, have map[string]any) Differences {
	c.node(s.root, desired, have)
	for _, difference := range c.found {
		slices.Reverse(difference.Path)
	}
	return c.found
}

// comparison walks the schema. Paths are made on the way back from a
// difference, so that a walk that finds none allocates nothing; till the end
// their last step comes first.
type comparison struct {
	found Differences
	// projected tells that the object is a projection.
	projected bool
	// places tells that indices are to be those of the desired elements, and
	// that each value is looked at, also in objects that are absent.
	places bool
	// displaces tells that missing elements take the place of others.
	displaces bool
	// absent tells that an object around this place is absent, and made as one.
	absent bool
}

func (c *comparison) add(kind Kind, want, have any) {
	c.found = append(c.found, Difference{Kind: kind, Want: want, Have: have})
}

// step walks on into a field or an element.
func (c *comparison) step(step Step, n node, want, have any) {
	before := len(c.found)
	c.node(n, want, have)
	for i := before; i < len(c.found); i++ {
		c.found[i].Path = append(c.found[i].Path, step)
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
	if n.forms.has(want, have) || n.byValue && want != nil && have != nil && sameValue(want, have) {
		return
	}
	c.value(want, have)
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
	switch {
	case want != nil && !wantOK, want == nil && have != nil && !haveOK:
		c.value(want, have)
		return
	case have != nil && !haveOK:
		c.add(Changed, restrict(n, want, creation), have)
		return
	}
	before, outermost := len(c.found), have == nil && !c.absent && !c.places
	c.absent = c.absent || outermost
	for _, f := range n.fields {
		c.step(Step{Field: f.name, Index: notAnIndex}, f.node, wanted[f.name], fields[f.name])
	}
	if !outermost {
		return
	}
	c.absent = false
	// An absent object is created as one: a JSON Patch cannot add below what is
	// not there. Where no value is known, the children stay what they are: not to be mended.
	if slices.ContainsFunc(c.found[before:], Difference.mendable) {
		c.found = c.found[:before]
		c.add(Changed, restrict(n, want, creation), nil)
	}
}

func (c *comparison) list(n list, want, have any) {
	wanted, wantOK := want.([]any)
	elements, haveOK := have.([]any)
	switch {
	case want != nil && !wantOK, want == nil && have != nil && !haveOK:
		c.value(want, have)
		return
	case have != nil && !haveOK:
		c.add(Changed, want, have)
		return
	}
	var room scratch
	var pairs pairing
	length := len(elements)
	if c.projected {
		elements, length = lengthOf(elements)
		pairs = n.project(wanted, elements)
	} else {
		pairs = n.pair(wanted, elements, &room)
	}
	size := n.measure(wanted, length, pairs)
	for place := range min(len(n.items), size.places) {
		if partner := pairs.partner(place); partner != absent {
			c.element(Step{Index: c.index(place, partner)}, n.items[place], at(wanted, place), elements[partner])
		}
	}
	if size.short {
		c.add(TooShort, pairs.missing(wanted, length), have)
	}
	c.cut(size, pairs, wanted, elements, have)
}

// cut says what is to be removed from a list.
func (c *comparison) cut(size size, pairs pairing, wanted, elements []any, have any) {
	switch {
	case size.long:
		c.add(TooLong, nil, have)
		if !c.projected {
			c.found[len(c.found)-1].Cut = pairs.cut(size)
		}
	case size.short && c.displaces && pairs.byKey:
		c.found[len(c.found)-1].Cut = pairs.displaced(wanted, elements)
	}
}

// element compares one of a list. That there is one more than is known is to be
// learned by itself, whether or not anything in it is observed (specification 1.6.7).
func (c *comparison) element(step Step, n node, want, have any) {
	before := len(c.found)
	c.step(step, n, want, have)
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

func at(items []any, i int) any {
	if i < len(items) {
		return items[i]
	}
	return nil
}

// lengthOf splits a projected list into its observed elements and the length
// of the whole list.
func lengthOf(items []any) ([]any, int) {
	if len(items) == 0 {
		return nil, 0
	}
	last, _ := items[len(items)-1].(map[string]any)
	length, ok := last[CurrentLengthKey].(int64)
	if !ok {
		return items, len(items)
	}
	return items[:len(items)-1], int(length)
}

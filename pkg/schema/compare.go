package schema

import "slices"

// Kind says what a [Difference] is, and so what becomes of it.
type Kind string

const (
	// Changed: the value at the path is not, or is no longer, the desired one.
	Changed Kind = "Changed"
	// TooLong: the list at the path has more elements than its maximum.
	TooLong Kind = "TooLong"
	// TooShort: the list at the path has fewer elements than its minimum.
	TooShort Kind = "TooShort"
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
	// Keep is the length to cut the list to, for TooLong.
	Keep int
}

// Differences of one object, in the order of the schema.
type Differences []Difference

// Drift gives the differences that are to be reverted.
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
// nothing. The values in the result are shared with the arguments.
func (s Schema) Compare(desired, live map[string]any) Differences {
	return s.compare(desired, live, false)
}

// CompareProjection is [Schema.Compare] with what [Schema.Project] gave for the
// live object in its place.
func (s Schema) CompareProjection(desired, projection map[string]any) Differences {
	return s.compare(desired, projection, true)
}

func (s Schema) compare(desired, have map[string]any, projected bool) Differences {
	c := comparison{projected: projected}
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
	// projected tells that lists end with their length.
	projected bool
}

func (c *comparison) add(kind Kind, want, have any, keep int) {
	c.found = append(c.found, Difference{Kind: kind, Want: want, Have: have, Keep: keep})
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
			c.value(want, have)
		}
	case object:
		c.object(n, want, have)
	case list:
		c.list(n, want, have)
	}
}

// value compares two values as a whole.
func (c *comparison) value(want, have any) {
	switch {
	case want == nil && have == nil:
	case want == nil:
		c.add(Unknown, nil, have, 0)
	case have == nil || !equal(want, have):
		c.add(Changed, want, have, 0)
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
		c.add(Changed, restrict(n, want, creation), have, 0)
		return
	}
	before := len(c.found)
	for _, f := range n.fields {
		c.step(Step{Field: f.name, Index: notAnIndex}, f.node, wanted[f.name], fields[f.name])
	}
	// An absent object is created as one: a JSON Patch cannot add below what is
	// not there. Where no value is known, the children stay what they are: not to be mended.
	if have == nil && slices.ContainsFunc(c.found[before:], Difference.mendable) {
		c.found = c.found[:before]
		c.add(Changed, restrict(n, want, creation), nil, 0)
	}
}

func (c *comparison) list(n list, want, have any) {
	wanted, wantOK := want.([]any)
	items, haveOK := have.([]any)
	switch {
	case want != nil && !wantOK, want == nil && have != nil && !haveOK:
		c.value(want, have)
		return
	case have != nil && !haveOK:
		c.add(Changed, want, have, 0)
		return
	}
	length := len(items)
	if c.projected {
		items, length = lengthOf(items)
	}
	keep := c.length(n, wanted, have, length)
	for i := 0; i < len(n.items) && i < len(items) && i < keep; i++ {
		c.step(Step{Index: i}, n.items[i], at(wanted, i), items[i])
	}
}

// length compares the length of a list (specification 1.6.8) and gives the
// number of its elements that stay: the others need no look.
func (c *comparison) length(n list, wanted []any, have any, length int) (keep int) {
	switch {
	case length < n.min:
		c.add(TooShort, wanted[min(length, len(wanted)):], have, 0)
	case n.max != 0 && length > n.max:
		if keep = length; wanted != nil { // of an unknown list nothing is cut: it is learned first
			keep = min(length, len(wanted))
		}
		c.add(TooLong, nil, have, keep)
		return keep
	}
	return length
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
	length, ok := last[currentLengthKey].(int64)
	if !ok {
		return items, len(items)
	}
	return items[:len(items)-1], int(length)
}

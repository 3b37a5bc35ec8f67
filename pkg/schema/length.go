package schema

import "slices"

// size is the result of a comparison of a list's length with its bounds.
type size struct {
	short, long bool
	// surplus is the number of elements to cut.
	surplus int
	// places is the number of remaining places. The others need no comparison.
	places int
	// spare are the elements that go first, in this order, if the elements are identified.
	spare []int
}

// measure compares the length of a list with its bounds.
func (n list) measure(wanted, elements []any, length int, p pairing) size {
	accepted := n.forms.hasLength(len(wanted), length)
	switch {
	case accepted && p.identified && !n.byKey(wanted) && p.released == nil:
		return size{places: p.places}
	case p.identified:
		return n.measureIdentified(wanted, elements, length, accepted, p)
	case accepted:
		return size{places: p.places}
	}
	s := size{short: length < n.min, long: n.exceeds(length), places: length}
	if s.long && wanted != nil { // an unknown list is learned first, so nothing is cut
		s.places = min(length, n.rest(wanted))
		s.surplus = length - s.places
	}
	return s
}

// measureIdentified counts only desired elements for the minimum, if any are desired: an undesired
// element replaces none of them. A learned element does not replace one of the manifest's. An
// unobserved element does not replace an observed one.
func (n list) measureIdentified(wanted, elements []any, length int, accepted bool, p pairing) size {
	required := len(wanted)
	if n.given > 0 {
		required = min(required, n.given)
	}
	found, taken := p.count(len(wanted))
	s, unwanted := size{places: p.places}, 0
	if n.alignment != literal && p.projected == nil && length > found+taken {
		s.spare, unwanted = n.spare(wanted, elements, p)
		length = found + taken + len(s.spare)
	}
	strangers := length - found - taken
	s.short = length < n.min || p.found(required) < min(n.min, required) || n.missesObserved(required, p)
	if s.short {
		length += len(wanted) - found
	}
	s.long = n.exceeds(length) && (s.short || !accepted) || unwanted > 0
	if s.long && wanted != nil {
		if n.exceeds(length) {
			s.surplus = max(0, length-n.rest(wanted))
		}
		s.surplus = max(s.surplus, unwanted)
		s.places = len(wanted) + taken - max(0, s.surplus-strangers)
	}
	return s
}

// missesObserved reports whether too few of the observed elements among the first places have a
// partner.
func (n list) missesObserved(places int, p pairing) bool {
	observed, found := 0, 0
	for place, item := range n.items[:min(places, len(n.items))] {
		if element, ok := item.(object); ok && len(element.fields) == 0 {
			continue
		}
		observed++
		if p.partner(place) != absent {
			found++
		}
	}
	return found < min(n.min, observed)
}

// spare returns the elements that have no place and that were not accepted, in the order in which
// they may go. The first ones always go: twins, which have the key of a desired element, and those that have
// left the spec.
func (n list) spare(wanted, elements []any, p pairing) (spare []int, unwanted int) {
	assigned := make([]bool, len(elements))
	for place := range p.places {
		if partner := p.partner(place); partner != absent {
			assigned[partner] = true
		}
	}
	known := n.additions(len(wanted))
	var others []int
	for i, element := range slices.Backward(elements) {
		switch {
		case assigned[i]:
		case slices.Contains(p.released, i):
			spare = append(spare, i)
		case len(known) > 0 && known[digest(element)] > 0:
			known[digest(element)]--
		case n.isTwin(element, wanted):
			spare = append(spare, i)
		default:
			others = append(others, i)
		}
	}
	return append(spare, others...), len(spare)
}

// isTwin reports whether an element has the key of a desired one, which has another partner.
func (n list) isTwin(element any, wanted []any) bool {
	if !n.byKey(wanted) || !n.keys.known(element) {
		return false
	}
	return slices.ContainsFunc(wanted, func(desired any) bool { return n.keys.same(desired, element) })
}

// additions returns how often each element may stand in the list beside the desired ones.
func (n list) additions(desired int) map[string]int {
	known := map[string]int{}
	for _, form := range n.forms {
		if form.Want != int64(desired) {
			continue
		}
		added := map[string]int{}
		for _, item := range itemsOf(form.Have) {
			if sum, ok := item.(string); ok {
				added[sum]++
			}
		}
		for sum, times := range added {
			known[sum] = max(known[sum], times)
		}
	}
	return known
}

// rest is the length of a list after the cut. It is never below the minimum, even if fewer elements
// are desired.
func (n list) rest(wanted []any) int { return max(len(wanted), n.min) }

func (n list) exceeds(length int) bool {
	isBounded := n.max != 0 || n.isDefault && n.alignment == inOrder
	return isBounded && length > n.max
}

// count returns the number of desired elements with a partner, and the number of elements that
// further places have taken.
func (p pairing) count(desired int) (found, taken int) {
	found = p.found(desired)
	return found, p.found(p.places) - found
}

// found returns how many of the first places have a partner.
func (p pairing) found(places int) int {
	found := 0
	for place := range places {
		if p.partner(place) != absent {
			found++
		}
	}
	return found
}

// missing returns the desired elements that a list of this length lacks.
func (p pairing) missing(wanted []any, length int) []any {
	if !p.identified {
		return wanted[min(length, len(wanted)):]
	}
	missing := []any{}
	for place, element := range wanted {
		if p.partner(place) == absent {
			missing = append(missing, element)
		}
	}
	return missing
}

// cut returns the elements to remove, from the end: undesired ones, and those of the places that do
// not remain.
func (p pairing) cut(s size) []int {
	placeOf := make([]int, p.elements)
	for i := range placeOf {
		placeOf[i] = absent
	}
	for place := range s.places {
		if partner := p.partner(place); partner != absent {
			placeOf[partner] = place
		}
	}
	cut := slices.Clone(s.spare[:min(len(s.spare), s.surplus)])
	for _, spare := range s.spare {
		placeOf[spare] = p.places // goes first, or not at all
	}
	for i := p.elements - 1; i >= 0 && len(cut) < s.surplus; i-- {
		if placeOf[i] == absent {
			cut = append(cut, i)
		}
	}
	slices.Sort(cut)
	return cut
}

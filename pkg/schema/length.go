package schema

import "slices"

// size is the result of a comparison of a list's length with its bounds.
type size struct {
	short, long bool
	// surplus is the number of elements to cut.
	surplus int
	// places is the number of remaining places. The others need no comparison.
	places int
}

// measure compares the length of a list with its bounds.
func (n list) measure(wanted []any, length int, p pairing) size {
	accepted := n.forms.hasLength(len(wanted), length)
	switch {
	case p.byKey:
		return n.measureByKey(wanted, length, accepted, p)
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

// measureByKey counts only desired elements for the minimum, if any are desired: an undesired
// element replaces none of them. A learned element does not replace one of the manifest's. An
// unobserved element does not replace an observed one.
func (n list) measureByKey(wanted []any, length int, accepted bool, p pairing) size {
	required := len(wanted)
	if n.given > 0 {
		required = min(required, n.given)
	}
	found, taken := p.count(len(wanted))
	strangers := length - found - taken
	s := size{places: p.places}
	s.short = length < n.min || p.found(required) < min(n.min, required) || n.missesObserved(required, p)
	if s.short {
		length += len(wanted) - found
	}
	s.long = n.exceeds(length) && (s.short || !accepted)
	if s.long && wanted != nil {
		s.surplus = max(0, length-n.rest(wanted))
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

// rest is the length of a list after the cut. It is never below the minimum, even if fewer elements
// are desired.
func (n list) rest(wanted []any) int { return max(len(wanted), n.min) }

func (n list) exceeds(length int) bool { return n.max != 0 && length > n.max }

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
	if !p.byKey {
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
	var cut []int
	for i := p.elements - 1; i >= 0 && len(cut) < s.surplus; i-- {
		if placeOf[i] == absent {
			cut = append(cut, i)
		}
	}
	slices.Sort(cut)
	return cut
}

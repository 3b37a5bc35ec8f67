package schema

// absent is the partner of a place without one.
const absent = -1

// pairing assigns an element of a list to each of its places. The places are those of the desired
// elements and, beyond them, of the schema.
type pairing struct {
	places int
	// partners are the partners of the places. If nil, each place has the element of its own index.
	partners []int32
	// elements is the number of elements.
	elements int
	// identified reports that the elements were found by what they are, not by index.
	identified bool
	// projected are the elements of such a projection. A null stands for an absent element.
	projected []any
	// released are the elements that have left the spec.
	released []int
}

// partner returns the index of the element of a place, or absent.
func (p pairing) partner(place int) int {
	switch {
	case p.projected != nil && place < len(p.projected) && p.projected[place] == nil:
		return absent
	case p.partners != nil && place < len(p.partners):
		return int(p.partners[place])
	case p.partners == nil && place < p.elements:
		return place
	}
	return absent
}

// project returns the pairing of a projected list, whose elements are in their places.
func (n list) project(wanted, elements []any) pairing {
	p := pairing{places: n.places(wanted), elements: len(elements), identified: n.identifies(wanted)}
	if p.identified {
		p.projected = elements
	}
	return p
}

// usual is the maximum length of a list that is searched without allocation.
const usual = 32

// scratch is the memory for the pairing of a list of usual length. It is on the stack, so that a
// list without drift costs no allocation.
type scratch struct {
	partners [usual]int32
	taken    [usual]bool
}

func (n list) places(wanted []any) int { return max(len(n.items), len(wanted)) }

// byKey reports whether the desired elements can be looked up by key.
func (n list) byKey(wanted []any) bool { return len(n.keys) > 0 && n.keys.allKnown(wanted) }

// identifies reports whether the elements are found by what they are, not by index.
func (n list) identifies(wanted []any) bool { return n.alignment != literal || n.byKey(wanted) }

// hasUniqueKeys reports whether each element has a key that no other one has.
func (n list) hasUniqueKeys(elements []any) bool {
	return n.byKey(elements) && n.keys.distinct(elements)
}

// pair finds the element of each place, see [Schema.Align]. By key, each desired element gets the first free element
// with its key. Then each further place of the schema takes the next free element with a key.
// Without a key, values that are learned from an element would not find it again.
func (n list) pair(wanted, elements []any, room *scratch) pairing {
	p := pairing{places: n.places(wanted), elements: len(elements), identified: n.identifies(wanted)}
	switch {
	case n.byKey(wanted):
	case n.alignment != literal:
		return n.pairByValue(p, wanted, elements)
	default:
		return p
	}
	if n.keys.inOrder(p.places, wanted, elements) {
		return p
	}
	taken := room.taken[:]
	if len(elements) > usual {
		p.partners, taken = n.keys.lookUp(wanted, elements)
	} else {
		p.partners = n.keys.search(room.partners[:0], wanted, elements, taken)
	}
	return n.takeRest(p, elements, taken)
}

// inOrder reports whether each place has the element of its own index, the usual case.
func (k keys) inOrder(places int, wanted, elements []any) bool {
	for i := range min(places, len(elements)) {
		if i < len(wanted) && !k.same(wanted[i], elements[i]) || !k.known(elements[i]) {
			return false
		}
	}
	return true
}

func (k keys) search(partners []int32, wanted, elements []any, taken []bool) []int32 {
	for _, desired := range wanted {
		partner := int32(absent)
		for i, element := range elements {
			if !taken[i] && k.same(desired, element) {
				taken[i], partner = true, int32(i)
				break
			}
		}
		partners = append(partners, partner)
	}
	return partners
}

// lookUp has the same result as search, in time proportional to the lists. It also returns which
// elements are taken.
func (k keys) lookUp(wanted, elements []any) (partners []int32, taken []bool) {
	partners, taken = make([]int32, 0, len(wanted)), make([]bool, len(elements))
	left := make(map[string][]int32, len(elements))
	for i, element := range elements {
		if k.known(element) {
			key := k.text(element)
			left[key] = append(left[key], int32(i))
		}
	}
	for _, desired := range wanted {
		partner := int32(absent)
		key := k.text(desired)
		if found := left[key]; len(found) > 0 {
			partner, left[key] = found[0], found[1:]
			taken[partner] = true
		}
		partners = append(partners, partner)
	}
	return partners, taken
}

// takeRest assigns to each place beyond the desired elements the next element that is not taken.
func (n list) takeRest(p pairing, elements []any, taken []bool) pairing {
	for i, element := range elements {
		if len(p.partners) >= p.places {
			break
		}
		if !taken[i] && (len(n.keys) == 0 || n.keys.known(element)) {
			p.partners = append(p.partners, int32(i))
		}
	}
	return p
}

package schema

import "slices"

// mostPairs bounds the pairs of elements that are compared to align one list. In a longer list, the
// elements between those that match at both ends are aligned by place.
const mostPairs = 1 << 14

// matcher assigns the elements of a list without keys to the desired ones.
type matcher struct {
	n                list
	wanted, elements []any
	partners         []int32
	taken            []bool
}

func (m *matcher) match(place, element int) {
	m.partners[place], m.taken[element] = int32(element), true //nolint:gosec // no list is that long
}

func (m *matcher) matches(place, element int) bool {
	return matches(m.n.item(place), m.wanted[place], m.elements[element])
}

// item returns the node of a place, nil if nothing is observed there.
func (n list) item(place int) node {
	if place < len(n.items) {
		return n.items[place]
	}
	return nil
}

// pairByValue finds the elements of a list without keys, see [Schema.Align].
func (n list) pairByValue(p pairing, wanted, elements []any) pairing {
	m := matcher{n: n, wanted: wanted, elements: elements}
	front := 0
	for front < min(len(wanted), len(elements)) && m.matches(front, front) {
		front++
	}
	if front == p.places && front == len(elements) {
		return p // the usual case: each place has the element of its own index
	}
	m.partners, m.taken = make([]int32, len(wanted)), make([]bool, len(elements))
	for place := range m.partners {
		m.partners[place] = absent
	}
	for place := range front {
		m.match(place, place)
	}
	place, element := len(wanted), len(elements)
	for place > front && element > front && m.matches(place-1, element-1) {
		place, element = place-1, element-1
		m.match(place, element)
	}
	if (place-front)*(element-front) <= mostPairs {
		m.matchCommon(front, place, element)
	}
	fixed := slices.Clone(m.partners)
	m.matchMoved()
	if n.alignment == inOrder {
		m.matchByPlace(fixed)
	}
	p.partners = m.partners
	return n.takeRest(p, elements, m.taken)
}

// matchCommon matches the longest common subsequence between the places front to place and the
// elements front to element.
func (m *matcher) matchCommon(front, place, element int) {
	rows, columns := place-front, element-front
	if rows == 0 || columns == 0 {
		return
	}
	same := make([]bool, rows*columns)
	longest := make([]int, (rows+1)*(columns+1)) // of the rest behind a place and an element
	for i := rows - 1; i >= 0; i-- {
		for j := columns - 1; j >= 0; j-- {
			at := i*(columns+1) + j
			if same[i*columns+j] = m.matches(front+i, front+j); same[i*columns+j] {
				longest[at] = longest[at+columns+2] + 1
			} else {
				longest[at] = max(longest[at+columns+1], longest[at+1])
			}
		}
	}
	for i, j := 0, 0; i < rows && j < columns; {
		switch at := i*(columns+1) + j; {
		case same[i*columns+j]:
			m.match(front+i, front+j)
			i, j = i+1, j+1
		case longest[at+columns+1] >= longest[at+1]:
			i++
		default:
			j++
		}
	}
}

// matchMoved matches elements that stand in another place.
func (m *matcher) matchMoved() {
	pairs := 0
	for place := range m.partners {
		for element := range m.elements {
			if m.partners[place] != absent || pairs > mostPairs {
				break
			}
			if m.taken[element] {
				continue
			}
			if pairs++; m.matches(place, element) {
				m.match(place, element)
			}
		}
	}
}

// matchByPlace matches what remains between the same two neighbours, in order. fixed are the
// partners of the places that are in order.
func (m *matcher) matchByPlace(fixed []int32) {
	element := 0
	for place := 0; place < len(fixed); {
		end := place
		for end < len(fixed) && fixed[end] == absent {
			end++
		}
		last := len(m.elements)
		if end < len(fixed) {
			last = int(fixed[end])
		}
		for ; place < end; place++ {
			for element < last && m.taken[element] {
				element++
			}
			if m.partners[place] == absent && element < last {
				m.match(place, element)
			}
		}
		place, element = end+1, last+1
	}
}

// matches reports whether a value has everything that is desired of it. It is as strict as a
// comparison that finds no drift, but in lists without keys it looks at each index only. It takes
// time proportional to the values.
func matches(n node, want, have any) bool {
	switch n := n.(type) {
	case leaf:
		return have == nil && n.namespace || n.matches(want, have)
	case object:
		return n.matches(want, have)
	case list:
		return n.matches(want, have)
	}
	return true
}

func (n leaf) matches(want, have any) bool {
	return want == nil || have != nil && equal(want, have) || n.isAlike(want, have)
}

func (n object) matches(want, have any) bool {
	wanted, wantOK := want.(map[string]any)
	fields, haveOK := have.(map[string]any)
	if want != nil && !wantOK || have != nil && !haveOK {
		return want == nil || equal(want, have)
	}
	for _, f := range n.fields {
		if !matches(f.node, wanted[f.name], fields[f.name]) {
			return false
		}
	}
	if want == nil {
		return true
	}
	for name, value := range fields {
		if n.closed && n.isForeign(name, value) {
			return false
		}
	}
	return have != nil || n.mayBeAbsent()
}

func (n list) matches(want, have any) bool {
	wanted, wantOK := want.([]any)
	elements, haveOK := have.([]any)
	if want != nil && !wantOK || have != nil && !haveOK || n.isMissed(want, have) {
		return want == nil || equal(want, have)
	}
	var room scratch
	pairs := pairing{places: n.places(wanted), elements: len(elements), identified: n.identifies(wanted)}
	if n.byKey(wanted) {
		pairs = n.pair(wanted, elements, &room)
	}
	size := n.measure(wanted, elements, len(elements), pairs)
	isMissing := size.short && len(pairs.missing(wanted, len(elements))) > 0 // the desired list itself may be too short
	if isMissing || size.surplus > 0 || n.isMoved(pairs, wanted) {
		return false
	}
	for place, item := range n.items {
		if partner := pairs.partner(place); partner != absent && !matches(item, at(wanted, place), elements[partner]) {
			return false
		}
	}
	return true
}

package schema

import "slices"

// Move moves an element of a list, as the operation of a JSON Patch does: it is removed from one
// index, and inserted at another one of the shorter list.
type Move struct{ From, To int }

// isMoved reports whether the observed elements of a list stand in another order.
func (n list) isMoved(p pairing, wanted []any) bool {
	if n.alignment != inOrder || p.partners == nil {
		return false
	}
	last := absent
	for _, place := range n.ranked(len(wanted)) {
		if partner := p.partner(place); partner != absent && n.isInOrder(place) {
			if partner < last {
				return true
			}
			last = partner
		}
	}
	return false
}

// isInOrder reports whether the order of the element at a place counts: something of it is observed,
// and the manifest has it, so that it was not learned.
func (n list) isInOrder(place int) bool {
	if place >= len(n.items) || n.given > 0 && place >= n.given {
		return false
	}
	element, ok := n.items[place].(object)
	return !ok || len(element.fields) > 0 || element.closed
}

// ranked returns the places of the desired elements in the order in which the server keeps them.
func (n list) ranked(desired int) []int {
	for _, form := range n.forms {
		if order, ok := orderIn(form.Have); ok && len(order) == desired {
			return order
		}
	}
	places := make([]int, desired)
	for i := range places {
		places[i] = i
	}
	return places
}

// orderIn reads the form of an order, and reports whether it is one: each place once.
func orderIn(have any) ([]int, bool) {
	items, _ := have.([]any)
	order, seen := make([]int, 0, len(items)), make([]bool, len(items))
	for _, item := range items {
		place, ok := item.(int64)
		if !ok || place < 0 || int(place) >= len(items) || seen[place] {
			return nil, false
		}
		order, seen[place] = append(order, int(place)), true
	}
	return order, len(order) > 0
}

// orderOf returns the places of the desired elements in the order of their partners. A place
// without a partner follows the one before it.
func (p pairing) orderOf(desired int) []any {
	places, rank := make([]int, desired), make([]int, desired)
	last := absent
	for i := range places {
		if partner := p.partner(i); partner != absent {
			last = partner
		}
		places[i], rank[i] = i, last
	}
	slices.SortStableFunc(places, func(a, b int) int { return rank[a] - rank[b] })
	order := make([]any, desired)
	for i, place := range places {
		order[i] = int64(place)
	}
	return order
}

// arrange sets how the patch moves and inserts elements, after the cut. The list then has its desired
// elements in order.
func (n list) arrange(d *Difference, p pairing, wanted []any) {
	a := arrangement{n: n, p: p, order: n.ranked(len(wanted))}
	for element := range p.elements {
		if _, gone := slices.BinarySearch(d.Cut, element); !gone {
			a.now = append(a.now, element)
		}
	}
	if n.isMoved(p, wanted) {
		d.Moves = a.moves()
	}
	if d.Kind == TooShort {
		d.Want, d.At = a.inserts(wanted)
	}
}

// arrangement follows the elements of a list through a patch.
type arrangement struct {
	n     list
	p     pairing
	order []int
	// now are the elements by their former index. An inserted element has the index inserted.
	now []int
}

const inserted = -2

// moves moves each element that is not in the longest sequence in order behind the one that it
// follows.
func (a *arrangement) moves() []Move {
	var places []int
	for _, place := range a.order {
		if a.p.partner(place) != absent && a.n.isInOrder(place) {
			places = append(places, place)
		}
	}
	rests := a.inSequence(places)
	var moves []Move
	previous := absent
	for i, place := range places {
		partner := a.p.partner(place)
		if !rests[i] {
			from := slices.Index(a.now, partner)
			a.now = slices.Delete(a.now, from, from+1)
			to := 0
			if previous != absent {
				to = slices.Index(a.now, previous) + 1
			} else if next := slices.Index(rests, true); next >= 0 {
				to = slices.Index(a.now, a.p.partner(places[next]))
			}
			a.now = slices.Insert(a.now, to, partner)
			moves = append(moves, Move{from, to})
		}
		previous = partner
	}
	return moves
}

// inSequence reports which of the places are in the longest sequence whose partners ascend.
func (a *arrangement) inSequence(places []int) []bool {
	ends, before := []int{}, make([]int, len(places)) // by length: the place that ends the lowest sequence
	for i, place := range places {
		partner := a.p.partner(place)
		at, _ := slices.BinarySearchFunc(ends, partner, func(end, partner int) int { return a.p.partner(places[end]) - partner })
		if before[i] = absent; at > 0 {
			before[i] = ends[at-1]
		}
		if at == len(ends) {
			ends = append(ends, i)
		} else {
			ends[at] = i
		}
	}
	rests := make([]bool, len(places))
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i != absent; i = before[i] {
			rests[i] = true
		}
	}
	return rests
}

// inserts returns the missing elements and their indices. An element is inserted behind the one
// that it follows, or else before the one that follows it, or else at the end.
func (a *arrangement) inserts(wanted []any) (missing []any, indices []int) {
	missing = []any{}
	for i, place := range a.order {
		if a.p.partner(place) != absent {
			continue
		}
		at := len(a.now)
		if i > 0 {
			at = a.after(a.order[i-1], indices)
		} else if next := slices.IndexFunc(a.order, func(other int) bool { return a.p.partner(other) != absent }); next >= 0 {
			at = slices.Index(a.now, a.p.partner(a.order[next]))
		}
		a.now = slices.Insert(a.now, at, inserted)
		missing, indices = append(missing, wanted[place]), append(indices, at)
	}
	return missing, indices
}

// after returns the index behind a place, which is present or was inserted last.
func (a *arrangement) after(place int, inserts []int) int {
	if partner := a.p.partner(place); partner != absent {
		if at := slices.Index(a.now, partner); at >= 0 {
			return at + 1
		}
		return len(a.now)
	}
	return inserts[len(inserts)-1] + 1
}

package schema

import "slices"

// displaced returns the elements that the missing ones replace.
func (p pairing) displaced(wanted, elements []any) []int {
	missing := p.missing(wanted, len(elements))
	if len(missing) > usual {
		return nil // manual changes are smaller, and the cost would be the product of both lengths
	}
	asked := make([]bool, len(elements))
	for place := range wanted {
		if partner := p.partner(place); partner != absent {
			asked[partner] = true
		}
	}
	var displaced []int
	for _, element := range missing {
		if next := mostAlike(element, elements, asked); next != absent {
			asked[next] = true
			displaced = append(displaced, next)
		}
	}
	slices.Sort(displaced)
	return displaced
}

// mostAlike returns the index of the free element with most fields in common with another one. Of
// several, it returns the first.
func mostAlike(element any, elements []any, taken []bool) int {
	best, most := absent, -1
	for i, other := range elements {
		if !taken[i] {
			if alike := fieldsAlike(element, other); alike > most {
				best, most = i, alike
			}
		}
	}
	return best
}

func fieldsAlike(a, b any) int {
	fields, _ := a.(map[string]any)
	others, _ := b.(map[string]any)
	alike := 0
	for name, value := range fields {
		if other, has := others[name]; has && equal(value, other) {
			alike++
		}
	}
	return alike
}

package schema

import "slices"

// Displace is [Schema.Compare] for an API that refuses the elements which a list
// lacks beside those that are there, as the second port of a Service without names,
// or two of one name: each of them takes the place of an element that nobody asked
// for, of the one that has most in common with it. Somebody has given it another
// key, then. The difference is TooShort and has a Cut.
func (s Schema) Displace(desired, live map[string]any) Differences {
	c := comparison{displaces: true}
	return c.compare(s, desired, live)
}

// Displaces tells if elements are taken away for others.
func (d Difference) Displaces() bool { return d.Kind == TooShort && len(d.Cut) > 0 }

// displaced gives the elements for which the missing ones are put in.
func (p pairing) displaced(wanted, elements []any) []int {
	missing := p.missing(wanted, len(elements))
	if len(missing) > usual {
		return nil // nobody does that by hand, and it would cost the product of both lengths
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

// mostAlike gives the index of the element that has most fields in common with
// another one, the first of them, of those that are not taken.
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

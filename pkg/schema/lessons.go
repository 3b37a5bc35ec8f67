package schema

// lessons are the learned values of a list's elements.
type lessons struct {
	// byPlace has the learned values of each place, if the elements have unique keys. Without
	// unique keys, all has the values that were learned in any element.
	byPlace []any
	all     any
}

// at returns the learned values for the element at the place.
func (l lessons) at(place int) any {
	if l.byPlace != nil {
		return l.byPlace[place]
	}
	return l.all
}

// learnedFrom returns the lessons of a list. Only the former schema knew whether
// it was learned by key or by index. So without unique keys, a field that was
// learned in one element counts as learned in all of them. An empty element only
// occupies a place.
func (n list) learnedFrom(items, desired []any) lessons {
	if !n.hasUniqueKeys(desired) || !n.hasUniqueKeys(items) {
		var all any
		for _, item := range items {
			if fields, ok := item.(map[string]any); !ok || len(fields) > 0 {
				all = merge(all, item)
			}
		}
		return lessons{all: all}
	}
	partners, _ := n.keys.lookUp(desired, items)
	byPlace := make([]any, len(partners))
	for place, partner := range partners {
		if partner != absent {
			byPlace[place] = items[partner]
		}
	}
	return lessons{byPlace: byPlace}
}

// merge adds the parts of another value, and returns the result. A value that was
// learned as a whole, or an empty object, stays whole.
func merge(into, from any) any {
	if into == nil {
		return clone(from)
	}
	switch from := from.(type) {
	case nil:
		return into
	case map[string]any:
		if fields, ok := into.(map[string]any); ok && len(fields) > 0 && len(from) > 0 {
			for name, value := range from {
				fields[name] = merge(fields[name], value)
			}
			return fields
		}
	case []any:
		if items, ok := into.([]any); ok {
			return append(items, from...)
		}
	}
	return true // nothing to look into
}

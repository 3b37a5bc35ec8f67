package schema

// asBefore reports whether a live value still has everything that was observed before.
func asBefore(former, live any) bool {
	switch former := former.(type) {
	case map[string]any:
		fields, ok := live.(map[string]any)
		for name, value := range former {
			if value != nil && !asBefore(value, fields[name]) {
				return false
			}
		}
		return ok
	case []any:
		if observed, length := Elements(former); len(observed) < len(former) {
			elements, ok := live.([]any)
			return ok && elementsAsBefore(observed, length, elements)
		}
	}
	return equal(former, live) // a list without its length was observed as a whole
}

func elementsAsBefore(observed []any, length int, live []any) bool {
	if length != len(live) || length < len(observed) {
		return false
	}
	inOrder := true
	for i, element := range observed {
		inOrder = inOrder && asBefore(element, live[i])
	}
	return inOrder || len(observed) == length && inAnyOrder(observed, live)
}

// inAnyOrder reports whether two lists have the same objects in any order. A projection has them in
// the order of the schema, but a live list that is aligned by key may have another order. The keys
// of a list that left the spec are no longer known. The first field with a different value in each
// element replaces them.
func inAnyOrder(former, live []any) bool {
	first, _ := at(former, 0).(map[string]any)
	for _, name := range sortedNames(first) {
		if places := placesBy(name, live); places != nil {
			return sameAt(places, name, former, live)
		}
	}
	return false
}

func sameAt(places map[any]int, name string, former, live []any) bool {
	for _, element := range former {
		value, _ := scalarOf(element, name)
		place, found := places[value]
		if !found || !asBefore(element, live[place]) {
			return false
		}
		delete(places, value)
	}
	return true
}

// placesBy maps the value of a field to the place of its element. It returns nil if two elements
// have the same value, or one lacks the field.
func placesBy(name string, elements []any) map[any]int {
	places := make(map[any]int, len(elements))
	for i, element := range elements {
		value, ok := scalarOf(element, name)
		if _, twice := places[value]; twice || !ok {
			return nil
		}
		places[value] = i
	}
	return places
}

// scalarOf returns a field of an element if it is a text or a number.
func scalarOf(element any, name string) (value any, ok bool) {
	switch value := fieldOf(element, name).(type) {
	case string, int64, float64:
		return value, true
	}
	return nil, false
}

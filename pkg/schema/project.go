package schema

// Project reduces a live object to its observed fields: the entry of
// last_observed_manifest. It omits fields that the object lacks. Each observed list ends with its
// length, which counts all elements. A value of another shape than the schema's is copied whole.
//
// In a list that is aligned by key, desired identifies the elements. Each gets the index of the
// desired one, and a null stands for an absent element. Without such lists, desired is not used.
func (s Schema) Project(desired, live map[string]any) map[string]any {
	projected, _ := project(s.root, desired, live).(map[string]any)
	return projected
}

func project(n node, desired, value any) any {
	switch n := n.(type) {
	case constant:
		return n.value
	case object:
		if fields, ok := value.(map[string]any); ok {
			return projectObject(n, desired, fields)
		}
	case list:
		if elements, ok := value.([]any); ok {
			wanted, _ := desired.([]any)
			return projectList(n, wanted, elements)
		}
	}
	return clone(value)
}

func projectObject(n object, desired any, fields map[string]any) map[string]any {
	wanted, _ := desired.(map[string]any)
	projected := make(map[string]any, len(n.fields))
	for _, f := range n.fields {
		if value := fields[f.name]; value != nil {
			projected[f.name] = project(f.node, wanted[f.name], value)
		}
	}
	return projected
}

func projectList(n list, wanted, elements []any) []any {
	var room scratch
	pairs := n.pair(wanted, elements, &room)
	places := len(n.items)
	if n.byKey(wanted) {
		places = pairs.places // desired but unobserved elements count for the length too
	}
	projected := make([]any, 0, places+1)
	last := 0
	for place := range places {
		projected = append(projected, n.projectPlace(pairs, place, wanted, elements))
		if pairs.partner(place) != absent {
			last = place + 1
		}
	}
	return append(projected[:last], map[string]any{CurrentLengthKey: int64(len(elements))})
}

func (n list) projectPlace(pairs pairing, place int, wanted, elements []any) any {
	partner := pairs.partner(place)
	switch {
	case partner == absent:
		return nil
	case place >= len(n.items):
		return map[string]any{}
	}
	return project(n.items[place], at(wanted, place), elements[partner])
}

// ObservedPart returns the observed fields of a desired object: the values
// that a patch may contain. It is not a patch, because its lists are incomplete.
func (s Schema) ObservedPart(desired map[string]any) map[string]any {
	restricted, _ := restrict(s.root, desired, observedPart).(map[string]any)
	return restricted
}

// part selects a part of a desired object.
type part int

const (
	// observedPart selects the observed fields.
	observedPart part = iota
	// creation selects the values to create an absent object from: the observed fields. A list that
	// must not be absent is taken as a whole.
	creation
)

func restrict(n node, value any, wanted part) any {
	switch n := n.(type) {
	case constant:
		return n.value
	case object:
		if fields, ok := value.(map[string]any); ok {
			return restrictObject(n, fields, wanted)
		}
	case list:
		if items, ok := value.([]any); ok {
			return restrictList(n, items, wanted)
		}
	}
	return clone(value)
}

func restrictObject(n object, fields map[string]any, wanted part) map[string]any {
	restricted := make(map[string]any, len(n.fields))
	for _, f := range n.fields {
		if value := fields[f.name]; value != nil {
			restricted[f.name] = restrict(f.node, value, wanted)
		}
	}
	return restricted
}

func restrictList(n list, items []any, wanted part) any {
	observed := min(len(n.items), len(items))
	if wanted == creation && n.min > 0 {
		return clone(items)
	}
	restricted := make([]any, 0, observed)
	for i, item := range items[:observed] {
		element := restrict(n.items[i], item, wanted)
		if wanted == creation {
			element = n.keys.with(element, item) // needed to find it again
		}
		restricted = append(restricted, element)
	}
	return restricted
}

// Elements splits a list of a projection into its observed elements and the
// length of the whole list.
func Elements(projected []any) (elements []any, length int) {
	if len(projected) == 0 {
		return nil, 0
	}
	last, _ := projected[len(projected)-1].(map[string]any)
	counted, ok := last[CurrentLengthKey].(int64)
	if !ok {
		return projected, len(projected)
	}
	return projected[:len(projected)-1], int(counted)
}

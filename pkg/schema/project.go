package schema

// Project cuts an object down to its observed fields (specification 1.5): the
// entry of last_observed_manifest. Fields that the object lacks are left out;
// each observed list ends with its length, which counts all elements. A value
// of another shape than the schema's is taken whole.
func (s Schema) Project(object map[string]any) map[string]any {
	return s.restrict(object, projection)
}

// ObservedPart gives the observed fields of a desired object (specification
// 1.7.1): the values that a patch may carry. It is no patch: its lists are cut.
func (s Schema) ObservedPart(desired map[string]any) map[string]any {
	return s.restrict(desired, observedPart)
}

// part says what of an object is wanted.
type part int

const (
	// observedPart is the observed fields.
	observedPart part = iota
	// projection is the observed fields, and the length of each list.
	projection
	// creation is what an absent object is created from: the observed fields, but
	// a list that were too short with them is taken whole, as an absent list is.
	creation
)

func (s Schema) restrict(object map[string]any, wanted part) map[string]any {
	restricted, _ := restrict(s.root, object, wanted).(map[string]any)
	return restricted
}

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
	if wanted == creation && observed < n.min {
		return clone(items)
	}
	restricted := make([]any, 0, observed+1)
	for i, item := range items[:observed] {
		restricted = append(restricted, restrict(n.items[i], item, wanted))
	}
	if wanted == projection {
		restricted = append(restricted, map[string]any{currentLengthKey: int64(len(items))})
	}
	return restricted
}

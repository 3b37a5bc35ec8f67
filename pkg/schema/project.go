package schema

// Project cuts an object down to its observed fields (specification 1.5): the
// entry of last_observed_manifest. Fields that the object lacks are left out;
// each observed list ends with its length, which counts all elements. A value
// of another shape than the schema's is taken whole.
func (s Schema) Project(object map[string]any) map[string]any {
	return s.restrict(object, true)
}

// ObservedPart gives the observed fields of a desired object (specification
// 1.7.1): the values that a patch may carry. It is no patch: its lists are cut.
func (s Schema) ObservedPart(desired map[string]any) map[string]any {
	return s.restrict(desired, false)
}

func (s Schema) restrict(object map[string]any, lengths bool) map[string]any {
	part, _ := restrict(s.root, object, lengths).(map[string]any)
	return part
}

func restrict(n node, value any, lengths bool) any {
	switch n := n.(type) {
	case constant:
		return n.value
	case object:
		if fields, ok := value.(map[string]any); ok {
			return restrictObject(n, fields, lengths)
		}
	case list:
		if items, ok := value.([]any); ok {
			return restrictList(n, items, lengths)
		}
	}
	return clone(value)
}

func restrictObject(n object, fields map[string]any, lengths bool) map[string]any {
	part := make(map[string]any, len(n.fields))
	for _, f := range n.fields {
		if value := fields[f.name]; value != nil {
			part[f.name] = restrict(f.node, value, lengths)
		}
	}
	return part
}

func restrictList(n list, items []any, lengths bool) []any {
	observed := min(len(n.items), len(items))
	part := make([]any, 0, observed+1)
	for i, item := range items[:observed] {
		part = append(part, restrict(n.items[i], item, lengths))
	}
	if lengths {
		part = append(part, map[string]any{currentLengthKey: int64(len(items))})
	}
	return part
}

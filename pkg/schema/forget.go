package schema

import "slices"

// Forget is for a learned value that the server now refuses. An example is the node ports of a
// former NodePort Service whose type changes to ClusterIP. field has no indices, as in "spec",
// "ports", "nodePort", and stands for the field of all elements.
//
// forgotten is the desired object without the values there, and below, that the manifest does not
// set. desired must belong to that manifest. The removals remove these values from the live object,
// if it still has them. They follow the rules of [Schema.Released], and their patch has the same
// position.
func (s Schema) Forget(desired, manifest, live map[string]any, field ...string) (forgotten map[string]any, removals Differences) {
	if len(field) == 0 {
		forgotten, _ = clone(desired).(map[string]any)
		return forgotten, nil
	}
	forgotten, _ = forget(s.root, desired, manifest, field).(map[string]any)
	s.root, _ = blind(s.root, field).(object)
	removals, _ = s.Released(forgotten, desired, nil, live)
	return forgotten, removals
}

// forget returns the desired value. At the field, only the manifest's values remain.
func forget(n node, desired, manifest any, field []string) any {
	switch n := n.(type) {
	case object:
		if fields, ok := desired.(map[string]any); ok && len(field) > 0 {
			return forgetIn(n, fields, manifest, field)
		}
	case list:
		if items, ok := desired.([]any); ok && len(field) > 0 {
			return forgetInAll(n, items, itemsOf(manifest), field)
		}
	case leaf:
		if holds(desired, field) {
			field = nil // a field that is observed as a whole goes together with the field below it
		}
	default:
		return clone(desired)
	}
	if len(field) > 0 {
		return clone(desired)
	}
	return clone(manifest)
}

// holds reports whether a value has something at the field, in any element on the way.
func holds(value any, field []string) bool {
	switch value := value.(type) {
	case nil:
		return false
	case map[string]any:
		if len(field) > 0 {
			return holds(value[field[0]], field[1:])
		}
	case []any:
		if len(field) > 0 {
			return slices.ContainsFunc(value, func(item any) bool { return holds(item, field) })
		}
	}
	return len(field) == 0
}

func forgetIn(n object, fields map[string]any, manifest any, field []string) map[string]any {
	name, forgotten := field[0], make(map[string]any, len(fields))
	for other, value := range fields {
		if other != name {
			forgotten[other] = clone(value)
		}
	}
	said, _ := manifest.(map[string]any)
	value := forget(child(n, Step{Field: name, Index: notAnIndex}), fields[name], said[name], field[1:])
	if _, named := said[name]; named || value != nil {
		forgotten[name] = value
	}
	return forgotten
}

// forgetInAll keeps each element, with its key.
func forgetInAll(n list, items, said []any, field []string) []any {
	forgotten := make([]any, 0, len(items))
	for i, item := range items {
		inner := child(n, Step{Index: i})
		if _, whole := inner.(leaf); whole {
			inner = nil
		}
		forgotten = append(forgotten, n.keys.with(forget(inner, item, at(said, i), field), item))
	}
	return forgotten
}

// blind returns the schema without the field, or nil if nothing remains. A field that is observed
// as a whole goes together with the field below it.
func blind(n node, field []string) node {
	switch n := n.(type) {
	case constant:
		return n
	case object:
		if len(field) > 0 {
			return blindObject(n, field)
		}
	case list:
		if len(field) > 0 {
			n.items = slices.Clone(n.items)
			for i, item := range n.items {
				if left := blind(item, field); left != nil {
					n.items[i] = left
				}
			}
			return n
		}
	}
	return nil
}

func blindObject(n object, field []string) object {
	at, found := n.find(field[0])
	if !found {
		return n
	}
	fields := slices.Clone(n.fields)
	if left := blind(fields[at].node, field[1:]); left != nil {
		fields[at].node = left
	} else {
		fields = slices.Delete(fields, at, at+1)
	}
	return n.with(fields)
}

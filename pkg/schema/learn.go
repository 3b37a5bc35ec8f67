package schema

import "slices"

// LateInitialize gives the desired object with the observed values of the live
// one that it did not know (specification 1.4). A known value never changes,
// and elements of lists that are not observed are never taken over.
func (s Schema) LateInitialize(desired, live map[string]any) map[string]any {
	return s.fill(desired, live)
}

// Retain gives the new desired object with the observed values that only the
// former one knows (specification 1.3): what was learned survives a change of
// the manifest, and where the manifest says a value, it wins.
func (s Schema) Retain(desired, former map[string]any) map[string]any {
	return s.fill(desired, former)
}

func (s Schema) fill(into, from map[string]any) map[string]any {
	filled, _ := fill(s.root, into, from).(map[string]any)
	return filled
}

// fill copies into and puts the observed values of from where it has none.
// The copy shares nothing with either.
func fill(n node, into, from any) any {
	switch n := n.(type) {
	case object:
		fields, ok := from.(map[string]any)
		target, fits := into.(map[string]any)
		if ok && (fits || into == nil) {
			return fillObject(n, target, fields)
		}
	case list:
		items, ok := from.([]any)
		target, fits := into.([]any)
		if ok && (fits || into == nil) {
			return fillList(n, target, items)
		}
	}
	if into != nil {
		return clone(into)
	}
	return clone(from)
}

func fillObject(n object, into, from map[string]any) map[string]any {
	filled := make(map[string]any, len(into))
	for name, value := range into {
		filled[name] = clone(value)
	}
	for _, f := range n.fields {
		if value := from[f.name]; value != nil {
			filled[f.name] = fill(f.node, into[f.name], value)
		}
	}
	return filled
}

func fillList(n list, into, from []any) []any {
	filled := make([]any, 0, len(into))
	for i, item := range into {
		if i < len(n.items) && i < len(from) {
			filled = append(filled, fill(n.items[i], item, from[i]))
		} else {
			filled = append(filled, clone(item))
		}
	}
	// A null cannot be appended, and nothing after it either: a list has no gaps.
	for i := len(into); i < len(n.items) && i < len(from) && from[i] != nil; i++ {
		filled = append(filled, fill(n.items[i], nil, from[i]))
	}
	return filled
}

// Learned gives what the desired object knows beyond the manifest: its identity
// and the observed values that the manifest does not set, in the shape of the
// object. In a list, what the manifest sets is held by an empty place, so that
// the rest keeps its index. It is nil if there are no such values.
//
// With it, the desired object is a function of the manifest and of what was
// learned: where desired = LateInitialize(manifest, live), it is also
// Retain(manifest, Learned(desired, manifest)). That is why an object or a list
// in which there was nothing to learn is learned as an empty one.
func (s Schema) Learned(desired, manifest map[string]any) map[string]any {
	value, some := beyond(s.root, desired, manifest)
	learned, _ := value.(map[string]any)
	if !some {
		return nil
	}
	metadata, ok := learned["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
	}
	metadata["name"] = s.id.Name
	if described, ok := manifest["metadata"].(map[string]any); ok && described["namespace"] != nil {
		metadata["namespace"] = described["namespace"]
	}
	learned["apiVersion"], learned["kind"], learned["metadata"] = s.id.APIVersion, s.id.Kind, metadata
	return learned
}

// beyond gives the observed values of value that base has not, and if there are any.
func beyond(n node, value, base any) (any, bool) {
	switch n := n.(type) {
	case constant:
		return nil, false
	case object:
		if fields, ok := value.(map[string]any); ok {
			return beyondObject(n, fields, base)
		}
	case list:
		if items, ok := value.([]any); ok {
			return beyondList(n, items, base)
		}
	}
	if value == nil || base != nil {
		return nil, false
	}
	return clone(value), true
}

func beyondObject(n object, fields map[string]any, base any) (any, bool) {
	known, fits := base.(map[string]any)
	learned := map[string]any{}
	if base != nil && !fits {
		return learned, false
	}
	for _, f := range n.fields {
		if value, some := beyond(f.node, fields[f.name], known[f.name]); some {
			learned[f.name] = value
		}
	}
	return learned, base == nil || len(learned) > 0
}

func beyondList(n list, items []any, base any) (any, bool) {
	known, fits := base.([]any)
	learned := []any{}
	if base != nil && !fits {
		return learned, false
	}
	last := 0
	for i := 0; i < len(n.items) && i < len(items); i++ {
		value, some := beyond(n.items[i], items[i], at(known, i))
		learned = append(learned, value)
		if some {
			last = i + 1
		}
	}
	return slices.Clip(learned[:last]), base == nil || last > 0
}

package schema

import "slices"

// LateInitialize returns the desired object with the observed values of the live one that were
// unknown before (Krake documentation, Application controller, step 6). A known value never changes. Elements of lists that are not
// observed are never copied.
func (s Schema) LateInitialize(desired, live map[string]any) map[string]any {
	filled, _ := filling{}.value(s.root, desired, live).(map[string]any)
	return filled
}

// Retain returns the new desired object with the observed values that only the former one knows. Learned values survive a change of the manifest. A value in the manifest
// takes precedence.
func (s Schema) Retain(desired, former map[string]any) map[string]any {
	filled, _ := filling{former: true}.value(s.root, desired, former).(map[string]any)
	return filled
}

// filling copies an object, and adds the observed values of another one where the object has none.
// The copy shares nothing with either.
type filling struct {
	// former reports that the other object is a former desired object, or learned values. Unlike a
	// live list, its lists may hold placeholders instead of elements.
	former bool
}

func (f filling) value(n node, into, from any) any {
	switch n := n.(type) {
	case object:
		fields, ok := from.(map[string]any)
		target, fits := into.(map[string]any)
		if ok && (fits || into == nil) {
			return f.object(n, target, fields)
		}
	case list:
		items, ok := from.([]any)
		target, fits := into.([]any)
		if ok && (fits || into == nil) {
			return f.list(n, target, items)
		}
	}
	if into != nil {
		return clone(into)
	}
	return clone(from)
}

func (f filling) object(n object, into, from map[string]any) map[string]any {
	filled := make(map[string]any, len(into))
	for name, value := range into {
		filled[name] = clone(value)
	}
	for _, field := range n.fields {
		if value := from[field.name]; value != nil {
			filled[field.name] = f.value(field.node, into[field.name], value)
		}
	}
	return filled
}

func (f filling) list(n list, into, from []any) []any {
	var room scratch
	pairs := n.pair(into, from, &room)
	if f.former && !n.keys.allKnown(from) {
		pairs = pairing{elements: len(from)}
	}
	filled := make([]any, 0, len(into))
	for place, item := range into {
		if partner := pairs.partner(place); place < len(n.items) && partner != absent {
			filled = append(filled, f.value(n.items[place], item, from[partner]))
		} else {
			filled = append(filled, clone(item))
		}
	}
	for place := len(into); place < len(n.items); place++ {
		partner := pairs.partner(place)
		if partner == absent || from[partner] == nil {
			break // neither a null nor the following elements can be appended: a list has no gaps
		}
		filled = append(filled, n.keys.with(f.value(n.items[place], nil, from[partner]), from[partner]))
	}
	return filled
}

// Learned returns the values of the desired object beyond the manifest. It has the identity and the
// observed values that the manifest does not set, in the shape of the object. In a list whose
// elements have keys, it has only elements with learned values, with their keys. In another list,
// placeholders stand for elements without learned values, so that the others keep their index. It
// is nil if there are no such values.
//
// The desired object is thus a function of the manifest and the learned values. If desired =
// LateInitialize(manifest, live), then desired also equals Retain(manifest, Learned(desired,
// manifest)). Therefore an object or a list without values to learn is learned as an empty one.
func (s Schema) Learned(desired, manifest map[string]any) map[string]any {
	return s.learned(excess{}, desired, manifest)
}

// LearnedInPlace is [Schema.Learned] with each element in its place. A schema without the keys can
// retain these values, too.
func (s Schema) LearnedInPlace(desired, manifest map[string]any) map[string]any {
	return s.learned(excess{inPlace: true}, desired, manifest)
}

func (s Schema) learned(e excess, desired, manifest map[string]any) map[string]any {
	value, some := e.beyond(s.root, desired, manifest)
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

// excess finds learned values.
type excess struct {
	// inPlace reports that elements without learned values keep their places, with their keys.
	inPlace bool
}

// beyond returns the observed values of value that base does not have, and whether there are any.
func (e excess) beyond(n node, value, base any) (any, bool) {
	switch n := n.(type) {
	case constant:
		return nil, false
	case object:
		if fields, ok := value.(map[string]any); ok {
			return e.object(n, fields, base)
		}
	case list:
		if items, ok := value.([]any); ok {
			return e.list(n, items, base)
		}
	}
	if value == nil || base != nil {
		return nil, false
	}
	return clone(value), true
}

func (e excess) object(n object, fields map[string]any, base any) (any, bool) {
	known, fits := base.(map[string]any)
	learned := map[string]any{}
	if base != nil && !fits {
		return learned, false
	}
	for _, f := range n.fields {
		if value, some := e.beyond(f.node, fields[f.name], known[f.name]); some {
			learned[f.name] = value
		}
	}
	return learned, base == nil || len(learned) > 0
}

func (e excess) list(n list, items []any, base any) (any, bool) {
	known, fits := base.([]any)
	if base != nil && !fits {
		return []any{}, false
	}
	learned := e.elements(n, items, known)
	return learned, base == nil || len(learned) > 0
}

// elements returns the elements of a list up to the last one with learned values.
func (e excess) elements(n list, items, known []any) []any {
	learned := []any{}
	byKey := n.byKey(known) && n.byKey(items) && n.keys.distinct(items)
	last := 0
	for i := 0; i < len(n.items) && i < len(items); i++ {
		value, some := e.beyond(n.items[i], items[i], at(known, i))
		if some && (byKey || i >= len(known)) || byKey && e.inPlace {
			value = n.keys.with(value, items[i])
		}
		if some || !byKey || e.inPlace {
			learned = append(learned, value)
		}
		if some {
			last = len(learned)
		}
	}
	return slices.Clip(learned[:last])
}

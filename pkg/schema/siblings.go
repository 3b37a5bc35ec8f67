package schema

import (
	"slices"
)

// Siblings returns the paths of the live values that stand beside the value at a path, in the same
// object, and are neither observed nor desired. path leads to a field of the live object.
func (s Schema) Siblings(desired, live map[string]any, path Path) []Path {
	if len(path) == 0 || path[len(path)-1].Index != notAnIndex {
		return nil
	}
	around := path[:len(path)-1]
	fields, ok := ValueAt(live, around).(map[string]any)
	place, known := s.placeOf(desired, live, around)
	observed, isObject := nodeAt(s.root, place).(object)
	if !ok || !known || !isObject {
		return nil // an object that is observed as a whole has no such fields
	}
	wanted, _ := ValueAt(desired, place).(map[string]any)
	var siblings []Path
	for _, name := range sortedNames(fields) {
		step := Step{Field: name, Index: notAnIndex}
		if fields[name] != nil && wanted[name] == nil && child(observed, step) == nil {
			siblings = append(siblings, around.below(step))
		}
	}
	return siblings
}

// Whole returns the differences with the whole desired value of each object that is absent, in place of its observed
// part, and reports whether that differs from any. An API may require fields that are not observed.
func (s Schema) Whole(desired, live map[string]any, differences Differences) (whole Differences, some bool) {
	whole = slices.Clone(differences)
	for i, difference := range whole {
		_, isObject := difference.Want.(map[string]any)
		place, known := s.placeOf(desired, live, difference.Path)
		if difference.Kind != Changed || difference.Have != nil || !isObject || !known {
			continue
		}
		if value := ValueAt(desired, place); value != nil && !equal(value, difference.Want) {
			whole[i].Want, some = value, true
		}
	}
	return whole, some
}

// placeOf returns the path in the desired object for a path in the live one. They differ in lists
// that are aligned by key.
func (s Schema) placeOf(desired, live map[string]any, path Path) (place Path, known bool) {
	element := len(path)
	for element > 0 && path[element-1].Index == notAnIndex {
		element--
	}
	if element == 0 {
		return path, true
	}
	for _, value := range s.Values(desired, live) {
		if startsWith(value.Path, path[:element]) {
			return slices.Concat(value.Place[:element], path[element:]), true
		}
	}
	return nil, false
}

func startsWith(path, beginning Path) bool {
	return len(path) >= len(beginning) && slices.Equal(path[:len(beginning)], beginning)
}

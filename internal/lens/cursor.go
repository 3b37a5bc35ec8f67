package lens

import "github.com/krake-observer/krake-observer/pkg/schema"

// cursor is a place in the live object, with what the observer schema has there.
type cursor struct {
	path, place schema.Path
	document    any
	// observable: the observer schema can reach it. whole: it is a part of a value that is observed as a whole.
	observable, known, whole bool
	// drifts: it is a part of a value that differs as a whole.
	drifts bool
}

// isObserved reports whether the value is observed as one.
func (s cursor) isObserved() bool { return s.whole || s.known && s.document == nil }

func (s cursor) field(name string) cursor {
	below := cursor{path: Below(s.path, name, -1), observable: s.observable, whole: s.isObserved()}
	if s.place != nil {
		below.place = Below(s.place, name, -1)
	}
	if fields, ok := s.document.(map[string]any); ok {
		below.document, below.known = fields[name], has(fields, name)
	}
	return below
}

func has(fields map[string]any, name string) bool {
	_, ok := fields[name]
	return ok
}

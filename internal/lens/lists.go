package lens

import (
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// list writes the line of a list. Its length can be observed, and, if its elements are no objects, only all of it.
func (r *reader) list(head string, items []any, s cursor) {
	line := Line{Text: head, Path: s.path, Place: s.place, Note: r.listNote(s)}
	documents, inPart := s.document.([]any)
	_, ofObjects := items[0].(map[string]any)
	switch {
	case s.isObserved():
		r.look(&line, s, nil)
		line.Note = "observed as a whole"
	case inPart && boundsOf(documents).isBounded() || inPart && !ofObjects:
		line.Observed, line.Look = true, InOrder
	case s.place != nil && !inPart:
		line.Look = Unobserved
	}
	if d, ok := r.found.at[s.path.String()]; ok && d.Kind != schema.Changed {
		line.Look, line.Desired = Drifting, "fewer elements"
		switch d.Kind {
		case schema.Moved:
			line.Desired = "in another order"
		case schema.TooShort:
			line.Desired = application.Cut("also "+r.sight.Shown(s.place, d.Want), longestText)
		}
	}
	length := 0
	if ofObjects && !s.isObserved() {
		length = len(items)
	}
	line.Toggle = r.toggle(s, length)
	r.add(line)
}

func (r *reader) listNote(s cursor) string {
	documents, ok := s.document.([]any)
	if !ok {
		return ""
	}
	note := boundsOf(documents).String()
	var names []string
	for _, key := range schema.KeysAt(r.types, s.path) {
		names = append(names, key.Name)
	}
	if own := ownKeys(documents); own != nil {
		names = own
	}
	if len(names) > 0 {
		note += "; found by " + strings.Join(names, ", ")
	}
	return note
}

func (r *reader) items(prefix string, items []any, s cursor) {
	for i, item := range items {
		below := r.element(s, i)
		if fields, ok := item.(map[string]any); ok && len(fields) > 0 {
			start := len(r.lines)
			r.fields(prefix+"- ", prefix+"  ", fields, below)
			if r.isCut(s.path, i) && start < len(r.lines) {
				r.lines[start].Look, r.lines[start].Desired = Drifting, "no such element"
			}
			continue
		}
		r.value(prefix+"-", prefix+"  ", item, below)
	}
}

func (r *reader) isCut(list schema.Path, index int) bool {
	return slices.Contains(r.found.at[list.String()].Cut, index)
}

// findings are the differences of an object, by the text of their paths.
type findings struct {
	// at has the drift at a place, below whether there is some at a place or in a part of it.
	at             map[string]schema.Difference
	below, unknown map[string]bool
}

func findingsOf(differences schema.Differences) findings {
	f := findings{at: map[string]schema.Difference{}, below: map[string]bool{}, unknown: map[string]bool{}}
	for _, d := range differences {
		if d.Kind == schema.Unknown {
			f.unknown[d.Path.String()] = true
			continue
		}
		f.at[d.Path.String()] = d
		for i := range len(d.Path) + 1 {
			f.below[d.Path[:i].String()] = true
		}
	}
	return f
}

// element returns the element of a list at a live index.
func (r *reader) element(s cursor, i int) cursor {
	below := cursor{path: Below(s.path, "", i), whole: s.isObserved(), drifts: r.driftsAsWhole(s)}
	if at := r.partners.of(s, below.path, i, r.desired); at >= 0 {
		below.place, below.observable = Below(s.place, "", at), s.observable
		if items, ok := s.document.([]any); ok && at < len(items)-1 {
			below.document, below.known = items[at], true
		}
	}
	return below
}

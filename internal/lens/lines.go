package lens

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Look is how the Application sees a field.
type Look string

const (
	// InOrder: it is observed and has the desired value.
	InOrder Look = "in order"
	// Drifting: it is observed and differs.
	Drifting Look = "drifting"
	// Pinned: it is observed, and has the desired value, which was learned from the cluster.
	Pinned Look = "pinned"
	// Unobserved: any value is fine.
	Unobserved Look = "not observed"
	// Private: the value may be a secret, and is hidden.
	Private Look = "private"
)

// Line is one line of an object as YAML.
type Line struct {
	Text string
	// Path leads to the field in the live object. Place leads to it in the desired object and in the observer
	// schema. It is nil for an element of a list that the desired object does not have.
	Path, Place schema.Path
	// Look is empty for an object, or for a list of any length: only their parts have one.
	Look     Look
	Observed bool
	// Desired is the desired value of a field that differs, as text.
	Desired string
	Culprit blame.Culprit
	// Note has the length and the keys of a list, as far as they count.
	Note string
	// Toggle changes whether the field is observed, nil if no observer schema can do that.
	Toggle *Toggle
}

// mostLines is how many lines of an object are shown.
const mostLines = 20_000

// Lines returns a live object as YAML, without its managedFields. A field that is desired and missing
// has a line as well. A Secret never shows its values.
func Lines(app *application.Application, e plan.Expected, live map[string]any, private bool) ([]Line, error) {
	id, err := manifest.Identify(live)
	if err != nil {
		return nil, err
	}
	desired := desiredAt(app, e, id)
	r := &reader{
		expected: e, desired: desired, sight: Redactor{e.ID.Kind, private}, types: e.Types.Of(e.ID),
		found: findingsOf(e.Schema.Compare(desired, live).Details()), culprits: blame.IndexOf(live), partners: partnersOf(e, desired, live),
	}
	root := cursor{document: e.Mangled.Document(), path: schema.Path{}, place: schema.Path{}, observable: true}
	r.fields("", "", withoutManagedFields(live), root)
	if r.more > 0 {
		r.lines = append(r.lines, Line{Text: fmt.Sprintf("# and %d more lines", r.more)})
	}
	return r.lines, nil
}

func withoutManagedFields(live map[string]any) map[string]any {
	metadata, ok := live["metadata"].(map[string]any)
	if !ok {
		return live
	}
	shown := maps.Clone(live)
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	shown["metadata"] = metadata
	return shown
}

// reader writes the lines of an object.
type reader struct {
	expected plan.Expected
	desired  map[string]any
	sight    Redactor
	types    schema.Type
	found    findings
	culprits blame.Index
	partners partners
	lines    []Line
	// more is how many lines are left out.
	more int
}

func (r *reader) add(line Line) {
	if len(r.lines) < mostLines {
		r.lines = append(r.lines, line)
	} else {
		r.more++
	}
}

// driftsAsWhole reports whether a value, or one that it is a part of, differs as a whole.
func (r *reader) driftsAsWhole(s cursor) bool {
	return s.drifts || r.found.at[s.path.String()].Kind == schema.Changed
}

// field returns a field of a cursor.
func (r *reader) field(s cursor, name string) cursor {
	below := s.field(name)
	below.drifts = r.driftsAsWhole(s)
	return below
}

// fields writes the fields of an object, the first one behind another prefix than the others.
func (r *reader) fields(first, prefix string, object map[string]any, s cursor) {
	document, _ := s.document.(map[string]any)
	for _, name := range inOrder(object) {
		r.value(first+keyText(name)+":", prefix, object[name], r.field(s, name))
		first = prefix
	}
	for _, name := range slices.Sorted(maps.Keys(document)) {
		if !has(object, name) {
			r.missing(first+keyText(name)+":", r.field(s, name))
		}
	}
}

// value writes a value behind its key, or behind the dash of its element.
func (r *reader) value(head, prefix string, value any, s cursor) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 || r.lacks(s) {
			r.composite(head, s)
			r.fields(prefix+"  ", prefix+"  ", value, s)
			return
		}
	case []any:
		if len(value) > 0 {
			r.list(head, value, s)
			r.items(prefix, value, s)
			return
		}
	}
	r.scalar(head, prefix, value, s)
}

// lacks reports whether an object lacks a desired field.
func (r *reader) lacks(s cursor) bool { return r.found.below[s.path.String()] }

func (r *reader) composite(head string, s cursor) {
	line := Line{Text: head, Path: s.path, Place: s.place}
	if s.isObserved() {
		r.look(&line, s, nil)
		line.Note = "observed as a whole"
		line.Toggle = r.toggle(s, 0)
	}
	r.add(line)
}

// missing writes a line for what is desired and not there.
func (r *reader) missing(head string, s cursor) {
	want := schema.ValueAt(r.desired, s.place)
	if want == nil || !r.differs(s) {
		return
	}
	line := Line{Text: head, Path: s.path, Place: s.place, Look: Drifting, Observed: true}
	_, shown := r.sight.Conceal(s.place, nil, want)
	line.Desired = shortText(shown)
	if s.isObserved() {
		line.Toggle = r.toggle(s, 0)
	}
	r.add(line)
}

// differs reports whether a field, or a part of it, drifts.
func (r *reader) differs(s cursor) bool { return s.drifts || r.found.below[s.path.String()] }

// scalar writes a value without parts. A text may have several lines.
func (r *reader) scalar(head, prefix string, value any, s cursor) {
	line := Line{Path: s.path, Place: s.place}
	r.look(&line, s, value)
	switch value.(type) {
	case map[string]any, []any: // empty: there is nothing to observe
		if s.isObserved() {
			line.Toggle = r.toggle(s, 0)
		} else if s.known {
			line.Look = InOrder
		}
	default:
		line.Toggle = r.toggle(s, 0)
	}
	if s.known && !s.isObserved() && !IsIdentity(s.place) && r.differs(s) { // an object or a list is desired
		line.Observed, line.Look, line.Toggle = true, Drifting, nil
		_, desired := r.sight.Conceal(s.place, nil, schema.ValueAt(r.desired, s.place))
		line.Desired = shortText(desired)
	}
	shown := value
	if r.sight.hides(s.path, value) {
		shown = Hidden
		if line.Look != Drifting {
			line.Look = Private
		}
	}
	first, more, isLong := strings.Cut(scalarText(shown), "\n")
	line.Text = head + " " + first
	r.add(line)
	for isLong {
		var next string
		next, more, isLong = strings.Cut(more, "\n")
		r.add(Line{Text: prefix + next, Look: line.Look, Observed: line.Observed})
	}
}

// look sets how the Application sees a value.
func (r *reader) look(line *Line, s cursor, have any) {
	line.Culprit = r.culprits.Of(s.path)
	line.Observed, line.Look = s.isObserved(), Unobserved
	if IsIdentity(s.place) {
		line.Look = InOrder
	}
	if !line.Observed || s.place == nil {
		return
	}
	want := schema.ValueAt(r.desired, s.place)
	switch {
	case r.differs(s):
		line.Look = Drifting
		if !s.whole {
			_, shown := r.sight.Conceal(s.place, have, want)
			line.Desired = shortText(shown)
		}
	case want != nil && schema.ValueAt(r.expected.Manifest, s.place) == nil && !IsIdentity(s.place):
		line.Look = Pinned
	case r.found.unknown[s.path.String()]:
		line.Look, line.Note = Pinned, "the first value that the agent sees is pinned"
	default:
		line.Look = InOrder
	}
}

// toggle returns the toggle of a field, nil if no observer schema can have it.
func (r *reader) toggle(s cursor, length int) *Toggle {
	if s.whole || s.place == nil || !s.observable || !mayObserve(r.expected.ID, s.place) {
		return nil
	}
	if last := s.place[len(s.place)-1]; last.Index >= 0 { // a list without objects is observed as a whole
		return nil
	}
	return &Toggle{Place: s.place, Length: length}
}

// mayObserve reports whether admission accepts a field in an observer schema.
func mayObserve(id manifest.ID, place schema.Path) bool {
	last := place[len(place)-1]
	switch first := place[0].Field; {
	case IsIdentity(place), schema.IsServerOwned(place), manifest.IsReserved(last.Field):
		return false
	case first == "metadata":
		return len(place) > 2 && (place[1].Field == "labels" || place[1].Field == "annotations")
	case id.APIVersion == "v1" && id.Kind == "Secret":
		return first != "data" && first != "stringData"
	}
	return true
}

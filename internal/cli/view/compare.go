package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Comparison compares one live object with the desired one. It has both as texts of the
// observed fields, and notes about what the texts do not show.
type Comparison struct {
	lens.Redactor

	id            manifest.ID
	Live, Desired string
	notes         []string
}

// Differs reports whether there is a difference or a note.
func (c Comparison) Differs() bool { return len(c.notes) > 0 || c.Live != c.Desired }

func (c *Comparison) note(format string, arguments ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, arguments...))
}

// String returns a unified diff after the notes, which are comments for readers. It is
// empty if there is no difference.
func (c Comparison) String() string {
	var b strings.Builder
	for _, note := range c.notes {
		fmt.Fprintln(&b, "#", env.OneLine(c.id.String()+": "+note))
	}
	gvk := c.id.GroupVersionKind() // as kubectl diff names files
	parts := []string{gvk.Group, gvk.Version, gvk.Kind, c.id.Namespace, c.id.Name}
	name := strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ".")
	b.Write(diff.Diff("live/"+name, []byte(c.Live), "desired/"+name, []byte(c.Desired)))
	return b.String()
}

// Compare compares one object of an Application; live is nil if there is none. Private shows
// values that may be secrets.
func Compare(app *application.Application, e plan.Expected, live map[string]any, private bool) (Comparison, error) {
	c := Comparison{Redactor: lens.Redactor{Kind: e.ID.Kind, Private: private}, id: e.ID}
	if live == nil {
		c.id = lens.Placed(app, e.ID)
		_, desired := c.Conceal(nil, nil, e.Desired)
		var err error
		c.Desired, err = env.YAML(desired)
		return c, err
	}
	id, err := manifest.Identify(live)
	if err != nil {
		return c, fmt.Errorf("compare %s: %w", e.ID, err)
	}
	c.id.Namespace = id.Namespace
	marks := application.Marks(app.NamespacedName, app.UID, id)
	c.noteOwner(app, marks, live)
	c.noteReleased(app, e, live)
	return c, c.observed(e.Schema, marks.On(plan.Placed(e.Desired, id.Namespace)), live)
}

// observed compares the observed fields. The comparison differs if and only if
// [schema.Schema.Compare] finds a difference.
func (c *Comparison) observed(s schema.Schema, desired, live map[string]any) error {
	differences := s.Compare(desired, live)
	for _, d := range differences.Details() {
		switch {
		case d.Kind == schema.Moved:
			c.note("%s: the elements stand in another order, and would be moved", d.Path)
		case d.Kind == schema.Changed && d.Want == nil:
			c.note("%s: this is not in the manifest, and would be removed: %s", d.Path, c.Shown(d.Path, d.Have))
		case d.Kind == schema.Unknown:
			c.note("%s: would be pinned to what it is: %s", d.Path, c.Shown(d.Path, d.Have))
		case len(schema.Differences{d}.Patch()) == 0:
			c.note("%s: the list has a length that is not legal, as it has in the manifest: no repair is possible", d.Path)
		}
		for _, index := range d.Cut {
			path := lens.Below(d.Path, "", index)
			c.note("%s: the list is too long, and this would be removed: %s", path, c.Shown(path, schema.ValueAt(live, path)))
		}
	}
	before, after := c.Conceal(nil, s.Project(desired, live), s.Project(desired, s.Overlay(desired, live)))
	var err error
	if c.Live, err = env.YAML(legible(before)); err != nil {
		return err
	}
	c.Desired, err = env.YAML(legible(after))
	return err
}

func (c *Comparison) noteOwner(app *application.Application, marks manifest.Marks, live map[string]any) {
	owner, marked := application.OwnerOf(live)
	switch {
	case marks.Prove(live):
		c.noteLabels(marks, live)
	case marked && owner == app.NamespacedName:
		c.note("it was a former Application's of this name, and would be taken over")
	case marked:
		c.note("conflict: it belongs to the Application %s, and nothing would be written as long as there is that: leave it out of one of the two", owner)
	case app.Settings.Adopt:
		c.note("it exists and belongs to no Application: it would be adopted")
	default:
		c.note("conflict: it exists and belongs to no Application, and nothing would be written: annotate the Application with %s=true to have it adopted, or choose another name", application.AdoptAnnotation)
	}
}

func (c *Comparison) noteLabels(marks manifest.Marks, live map[string]any) {
	metadata, _ := live["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	for _, label := range slices.Sorted(maps.Keys(marks.Labels)) {
		if labels[label] != marks.Labels[label] {
			c.note("metadata.labels[%q]: the label by which its agent finds it is missing, and would be put back", label)
		}
	}
}

// noteReleased notes the fields that left the spec, if the agent has not carried it out yet.
func (c *Comparison) noteReleased(app *application.Application, e plan.Expected, live map[string]any) {
	if e.LastObserved == nil || app.Status.ObservedSpec == app.Spec.Digest() {
		return
	}
	fields, elements := e.Schema.Valued(e.Desired, e.Learned).Released(e.Desired, e.LastObserved, e.Learned, live)
	note := func(path schema.Path, value any) {
		c.note("%s: it left the Application, and would be removed: %s", path, c.Shown(path, value))
	}
	for _, d := range fields {
		note(d.Path, d.Have)
	}
	for _, d := range elements {
		for _, index := range d.Cut {
			path := lens.Below(d.Path, "", index)
			note(path, schema.ValueAt(live, path))
		}
	}
}

// legible returns a projection without the nulls and lengths that are for programs. For a
// list it adds how many elements are not observed.
func legible(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name, field := range value {
			fields[name] = legible(field)
		}
		return fields
	case []any:
		elements, length := schema.Elements(value)
		items := make([]any, 0, len(value))
		for _, element := range elements {
			if element != nil {
				items = append(items, legible(element))
			}
		}
		if more := length - len(items); more > 0 {
			items = append(items, "("+strconv.Itoa(more)+" more, not observed)")
		}
		return items
	}
	return value
}

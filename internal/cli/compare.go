package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/plan"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// expect gives the objects of an Application as its agent is to keep them. What was
// learned on another cluster says nothing of the one where it is to be.
func expect(app *application.Application) ([]plan.Expected, error) {
	if app.Status.ClusterName() != app.Cluster {
		app.Learned, app.LastObserved = nil, application.Published{}
	}
	return plan.Expect(app)
}

// getExpected gives an Application and its objects as its agent is to keep them. What
// may be misunderstood of it is told.
func (e *environment) getExpected(ctx context.Context, name string) (*application.Application, []plan.Expected, error) {
	stored, err := e.get(ctx, name)
	if err == nil {
		err = stored.err
	}
	if err != nil {
		return nil, nil, err
	}
	app := stored.app
	if !stored.admitted() {
		fmt.Fprintf(e.ErrOut, "the Application %s was never admitted, so that no agent carries it out: see kubectl krake describe %s\n", app.NamespacedName, app.Name)
	}
	if damaged := app.Damaged[application.LearnedKey]; damaged != nil {
		fmt.Fprintf(e.ErrOut, "what was learned for the Application %s cannot be read, and is left out: %s\n", app.NamespacedName, oneLine(damaged.Error()))
	}
	expected, err := expect(app)
	if err != nil {
		return nil, nil, fmt.Errorf("the Application %s: %w", app.NamespacedName, err)
	}
	return app, expected, nil
}

// comparison is one object as it is and as its Application wants it: texts of its
// observed fields, and what they do not show.
type comparison struct {
	id manifest.ID
	// private: values that may be secrets are shown.
	private       bool
	live, desired string
	notes         []string
}

func (c comparison) differs() bool { return len(c.notes) > 0 || c.live != c.desired }

func (c comparison) sight() sight { return sight{c.id.Kind, c.private} }

func (c *comparison) note(format string, arguments ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, arguments...))
}

// String gives a unified diff behind the notes, which are comments to whoever reads
// it, or nothing if there is no difference.
func (c comparison) String() string {
	var b strings.Builder
	for _, note := range c.notes {
		fmt.Fprintln(&b, "#", oneLine(c.id.String()+": "+note))
	}
	name := fileName(c.id)
	b.Write(diff.Diff("live/"+name, []byte(c.live), "desired/"+name, []byte(c.desired)))
	return b.String()
}

// fileName names an object as kubectl diff does.
func fileName(id manifest.ID) string {
	gvk := id.GroupVersionKind()
	parts := []string{gvk.Group, gvk.Version, gvk.Kind, id.Namespace, id.Name}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ".")
}

// compare looks at one object of an Application; live is nil if there is none. Values
// that may be secrets are shown if private says so.
func compare(app *application.Application, e plan.Expected, live map[string]any, private bool) (comparison, error) {
	c := comparison{id: e.ID, private: private}
	if live == nil {
		c.id = placed(app, e.ID)
		_, desired := conceal(c.sight(), nil, e.Desired)
		var err error
		c.desired, err = textOf(desired)
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
	return c, c.observed(e.Schema, marks.On(placedDesired(e.Desired, id.Namespace)), live)
}

// observed compares the observed fields. There is something to tell if and only if
// [schema.Schema.Compare] finds anything.
func (c *comparison) observed(s schema.Schema, desired, live map[string]any) error {
	differences := s.Compare(desired, live)
	for _, d := range differences {
		switch {
		case d.Kind == schema.Unknown:
			c.note("%s: would be pinned to what it is: %s", d.Path, shown(c.sight(), d.Path, d.Have))
		case len(schema.Differences{d}.Patch()) == 0:
			c.note("%s: the list has a length that is not legal, as it has in the manifest: no repair is possible", d.Path)
		}
		for _, index := range d.Cut {
			path := below(d.Path, "", index)
			c.note("%s: the list is too long, and this would be removed: %s", path, shown(c.sight(), path, along(live, path)))
		}
	}
	before, after := s.Project(desired, live), s.Project(desired, s.Overlay(desired, live))
	hiddenBefore, hiddenAfter := conceal(c.sight(), before, after)
	var err error
	if c.live, err = textOf(legible(hiddenBefore)); err != nil {
		return err
	}
	c.desired, err = textOf(legible(hiddenAfter))
	return err
}

// noteOwner tells whose the object is, if it is not the Application's.
func (c *comparison) noteOwner(app *application.Application, marks manifest.Marks, live map[string]any) {
	owner, marked := application.OwnerOf(live)
	switch {
	case marks.Prove(live):
		c.noteLabels(marks, live)
	case marked && owner == app.NamespacedName:
		c.note("it was a former Application's of this name, and would be taken over")
	case marked:
		c.note("conflict: it belongs to the Application %s, and nothing would be written as long as there is that: leave it out of one of the two", owner)
	case app.Wishes.Adopt:
		c.note("it exists and belongs to no Application: it would be adopted")
	default:
		c.note("conflict: it exists and belongs to no Application, and nothing would be written: annotate the Application with %s=true to have it adopted, or choose another name", application.AdoptAnnotation)
	}
}

func (c *comparison) noteLabels(marks manifest.Marks, live map[string]any) {
	metadata, _ := live["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	for _, label := range slices.Sorted(maps.Keys(marks.Labels)) {
		if labels[label] != marks.Labels[label] {
			c.note("metadata.labels[%q]: the label by which its agent finds it is missing, and would be put back", label)
		}
	}
}

// noteReleased tells what left a spec that was not carried out yet.
func (c *comparison) noteReleased(app *application.Application, e plan.Expected, live map[string]any) {
	if e.LastObserved == nil || app.Status.ObservedSpec == app.Spec.Digest() {
		return
	}
	for _, d := range e.Schema.Released(e.Desired, e.LastObserved, e.Learned, live) {
		c.note("%s: it left the Application, and would be removed: %s", d.Path, shown(c.sight(), d.Path, d.Have))
	}
}

// placed gives the identity of an object with the namespace where it is, by what the
// agent holds: it may have mapped the namespace of the Application to another one.
func placed(app *application.Application, id manifest.ID) manifest.ID {
	home := cmp.Or(id.Namespace, app.Namespace)
	var elsewhere []string
	for _, held := range app.Inventory {
		switch {
		case !isNamesake(held, id):
		case cmp.Or(held.Namespace, home) == home:
			id.Namespace = home
			return id
		default:
			elsewhere = append(elsewhere, held.Namespace)
		}
	}
	id.Namespace = home
	if len(elsewhere) == 1 && home == app.Namespace {
		id.Namespace = elsewhere[0]
	}
	return id
}

// isNamesake tells if two objects are of a kind and a name, whatever the version.
func isNamesake(a, b manifest.ID) bool {
	return a.GroupVersionKind().GroupKind() == b.GroupVersionKind().GroupKind() && a.Name == b.Name
}

// placedDesired gives a desired object that says its namespace with the one where the
// live object is.
func placedDesired(desired map[string]any, namespace string) map[string]any {
	metadata, _ := desired["metadata"].(map[string]any)
	if metadata["namespace"] == nil || namespace == "" {
		return desired
	}
	metadata, desired = maps.Clone(metadata), maps.Clone(desired)
	metadata["namespace"], desired["metadata"] = namespace, metadata
	return desired
}

// leaving are the objects that the Application holds and does not want any more. The
// Secrets of its hooks are wanted, though their agent alone knows them.
func leaving(app *application.Application, expected []plan.Expected) []manifest.ID {
	return slices.DeleteFunc(slices.Clone(app.Inventory), func(held manifest.ID) bool {
		return isOfHook(app, held) || slices.ContainsFunc(expected, func(e plan.Expected) bool {
			return isNamesake(held, e.ID) && (held.Namespace == "" || held.Namespace == placed(app, e.ID).Namespace)
		})
	})
}

func isOfHook(app *application.Application, held manifest.ID) bool {
	return held.APIVersion == "v1" && held.Kind == "Secret" && slices.ContainsFunc(app.Spec.Hooks.Enabled(), func(hook application.Hook) bool {
		return held.Name == application.TokenSecret(app.Name, hook) || held.Name == application.CertsSecret(app.Name, hook)
	})
}

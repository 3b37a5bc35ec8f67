package ignored

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Translation applies the rules of a source to the observer schemas of its objects, and collects what
// it cannot translate.
type Translation struct {
	source   Source
	selected []bool
	// hits are the expressions that select a field of an object, and the managers that own one, by their
	// places in the source.
	hits  map[string]bool
	notes []string
}

// NewTranslation returns a translation that no object was given to yet.
func NewTranslation(source Source) *Translation {
	return &Translation{source: source, selected: make([]bool, len(source.rules)), hits: map[string]bool{}}
}

// Change is what has changed in an observer schema.
type Change struct {
	Ignored []Ignored
	// Open are the lists that may get longer.
	Open []schema.Path
}

// LeavesOut returns why an object should not be imported, empty if it should: the source does not
// require that it exists.
func (t *Translation) LeavesOut(object Object) string {
	reason := ""
	for i, rule := range t.source.rules {
		if rule.isAbsence && rule.selects(object) {
			t.selected[i] = true
			reason = cmp.Or(reason, fmt.Sprintf("the %s does without it by %s", t.source, rule.place))
		}
	}
	return reason
}

// Apply removes what the rules ignore from the observer schema of an object. Ignored fields stay in
// the manifest, which has the values to create the object again. Ignored elements of lists leave the
// manifest, too, because the length of an observed list counts. The context ends the evaluation of an
// expression, which may run forever, before its own limit.
func (t *Translation) Apply(ctx context.Context, target Target) (Change, error) {
	e := edit{Target: target, name: target.Live.GetKind() + " " + target.Live.GetName(), reasons: map[string]string{}}
	for i, rule := range t.source.rules {
		if !rule.selects(target.Live) {
			continue
		}
		t.selected[i] = true
		for _, pointer := range rule.pointers {
			reason := fmt.Sprintf("the %s ignores it by %s", t.source, pointer.place)
			if rule.isMark {
				reason = fmt.Sprintf("the %s marks its objects by it", t.source)
			}
			e.ignore(placesOf(target.Manifest, pointer.steps), reason)
		}
		for _, x := range rule.expressions {
			selected, err := t.evaluate(ctx, x, target)
			if ctx.Err() != nil {
				return Change{}, ctx.Err()
			}
			if err != nil {
				e.notes = append(e.notes, fmt.Sprintf("%s ignores nothing of %s: %q: %v", x.place, e.name, x.text, err))
			}
			e.ignore(placesOf(target.Manifest, selected...), fmt.Sprintf("the %s ignores it by %s", t.source, x.place))
		}
		for _, manager := range rule.managers {
			owned, err := ownedBy(manager.name, target)
			if err != nil {
				return Change{}, err
			}
			// A manager owns the key of an element because it has set other fields of it.
			owned = slices.DeleteFunc(owned, e.isKey)
			t.hits[manager.place] = t.hits[manager.place] || len(owned) > 0
			e.ignore(places{paths: owned}, fmt.Sprintf("the %s ignores what %s writes by %s", t.source, manager.name, manager.place))
		}
	}
	e.run()
	t.notes = append(t.notes, e.notes...)
	return Change{e.ignored, e.open}, nil
}

// evaluate returns what an expression selects in the manifest. If that is nothing, it may select in the
// live object what the manifest leaves out, which is not observed anyway.
func (t *Translation) evaluate(ctx context.Context, x expression, target Target) ([]steps, error) {
	selected, err := x.in(ctx, target.Manifest)
	others := selected
	if len(selected) == 0 && (err == nil || errors.Is(err, errFails)) {
		var errLive error
		others, errLive = x.in(ctx, target.Live.Object)
		switch {
		case errors.Is(errLive, errFails), errLive == nil && len(placesOf(target.Manifest, others...).paths) == 0:
			err = nil
		case errLive != nil:
			err = errLive
		}
	}
	t.hits[x.place] = t.hits[x.place] || len(others) > 0 || err != nil
	return selected, err
}

// Untranslated returns a line for each part of the source that is not in the observer schemas. Call it
// after all objects.
func (t *Translation) Untranslated() []string {
	lines := slices.Clone(t.source.untranslated)
	for i, rule := range t.source.rules {
		if !t.selected[i] && !rule.isImplied {
			lines = append(lines, rule.place+" selects none of the imported objects")
			continue
		}
		for _, x := range rule.expressions {
			if !t.hits[x.place] {
				lines = append(lines, fmt.Sprintf("%s: %q: it selects no field of the imported objects now", x.place, x.text))
			}
		}
		for _, manager := range rule.managers {
			if !t.hits[manager.place] {
				lines = append(lines, fmt.Sprintf("%s: %s owns no field of the objects now, and an observer schema names fields", manager.place, manager.name))
			}
		}
	}
	return append(lines, t.notes...)
}

// ownedBy returns the places in the manifest of the fields that a manager owns in the live object.
func ownedBy(manager string, target Target) ([]schema.Path, error) {
	whole, err := schema.Default(target.Manifest)
	if err != nil {
		return nil, err
	}
	live := withEntriesOf(manager, target.Live.Object)
	var owned []schema.Path
	for _, value := range whole.Align(target.Kind).Values(target.Manifest, target.Live.Object) {
		if value.Path != nil && blame.Of(live, []schema.Path{value.Path}, "").Known() {
			owned = append(owned, value.Place)
		}
	}
	return owned, nil
}

// withEntriesOf returns an object with the managedFields of one manager.
func withEntriesOf(manager string, live map[string]any) map[string]any {
	metadata, _ := live["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	live, metadata = maps.Clone(live), maps.Clone(metadata)
	metadata["managedFields"] = slices.DeleteFunc(slices.Clone(entries), func(entry any) bool {
		fields, _ := entry.(map[string]any)
		return fields["manager"] != manager
	})
	live["metadata"] = metadata
	return live
}

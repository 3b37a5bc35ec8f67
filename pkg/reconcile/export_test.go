package reconcile

import (
	"fmt"
	"reflect"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// CheckKept tells if the plan that is kept of an Application is not the one that comes
// of its spec and of what was learned: a pass has changed it, or what it was made from.
// It is given as it is stored.
func (r *Reconciler) CheckKept(stored *application.Application) error {
	name := stored.NamespacedName
	known := r.memories.byID[name]
	if known == nil || known.planned == nil || known.planned.spec != stored.Spec.Digest() {
		return nil
	}
	kept := known.planned
	app := &application.Application{NamespacedName: name, UID: known.uid, Spec: stored.Spec, Learned: kept.learned}
	app.Spec.Fetched = kept.fetched
	fresh, err := (*keptPlan)(nil).of(app)
	if err != nil {
		return err
	}
	located := fresh.drafted()
	for i := range located {
		located[i].Ref = kept.resources[i].Ref
	}
	if err := fresh.complete(app, located); err != nil {
		return err
	}
	for i := range kept.resources {
		if kept.resources[i].Revision != "" && !reflect.DeepEqual(kept.resources[i], fresh.resources[i]) {
			return fmt.Errorf("the plan that is kept of %s has become\n%#v\nand not\n%#v", fresh.resources[i].ID, kept.resources[i], fresh.resources[i])
		}
	}
	if !reflect.DeepEqual(kept.mangled, fresh.mangled) {
		return fmt.Errorf("the schema that is kept of %s has become\n%+v\nand not\n%+v", name, kept.mangled, fresh.mangled)
	}
	return known.published.check(stored)
}

// check tells if what is taken for published is not what would be made of the objects.
func (last *published) check(stored *application.Application) error {
	if last == nil || last.version != stored.Version {
		return nil // nobody goes by it
	}
	var applied, observed []map[string]any
	for i := range last.plan.resources {
		planned := last.plan.resources[i] // a copy, whose objects may be unpacked
		if planned.Revision != last.revisions[i] {
			return nil // a later plan's, or with what was learned since: nobody goes by it
		}
		applied = append(applied, planned.desired())
		observed = append(observed, planned.asWritten(withoutMarks(last.seen[i].Fields())))
	}
	for what, differ := range map[string]bool{
		"applied":  !application.Publishing(applied).Equal(stored.LastApplied),
		"observed": !application.Publishing(observed).Equal(stored.LastObserved),
	} {
		if differ {
			return fmt.Errorf("what is taken for published as %s is not what would be: %v, %v", what, last, [][]map[string]any{applied, observed})
		}
	}
	return nil
}

// OtherHistory takes the turn of another Application's write.
func (r *Reconciler) OtherHistory(now time.Time) { r.histories.wait(now) }

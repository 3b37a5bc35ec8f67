package reconcile

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// CheckKept tells if the plan that is kept of an Application is not the one that comes
// of its spec and of what was learned: a pass has changed it, or what it was made from.
func (r *Reconciler) CheckKept(name types.NamespacedName) error {
	known := r.memories.byID[name]
	if known == nil || known.planned == nil {
		return nil
	}
	kept := known.planned
	app := &application.Application{NamespacedName: name, UID: known.uid, Spec: kept.spec, Learned: kept.learned}
	fresh, err := (*keptPlan)(nil).of(app)
	if err != nil {
		return err
	}
	located := slices.Clone(fresh.drafted)
	for i := range located {
		located[i].Ref = kept.completed[i].Ref
	}
	if err := fresh.complete(app, located); err != nil {
		return err
	}
	for i := range kept.completed {
		if kept.completed[i].Revision != "" && !reflect.DeepEqual(kept.completed[i], fresh.completed[i]) {
			return fmt.Errorf("the plan that is kept of %s has become\n%+v\nand not\n%+v", fresh.completed[i].ID, kept.completed[i], fresh.completed[i])
		}
	}
	if !reflect.DeepEqual(kept.mangled, fresh.mangled) {
		return fmt.Errorf("the schema that is kept of %s has become\n%+v\nand not\n%+v", name, kept.mangled, fresh.mangled)
	}
	return known.published.check()
}

// check tells if what is taken for published is not what would be made of the objects.
func (last *published) check() error {
	if last == nil {
		return nil
	}
	var applied, observed []map[string]any
	for i := range last.plan.completed {
		planned := &last.plan.completed[i]
		if planned.Revision != last.revisions[i] {
			return nil // a later plan's, or with what was learned since: nobody goes by it
		}
		applied = append(applied, planned.desired)
		observed = append(observed, planned.asWritten(withoutMarks(last.seen[i].Fields())))
	}
	for what, differ := range map[string]bool{
		"applied":  !application.Publishing(applied).Equal(last.applied),
		"observed": !application.Publishing(observed).Equal(last.observed),
	} {
		if differ {
			return fmt.Errorf("what is taken for published as %s is not what would be: %v, %v", what, last, [][]map[string]any{applied, observed})
		}
	}
	return nil
}

// OtherHistory takes the turn of another Application's write.
func (r *Reconciler) OtherHistory(now time.Time) { r.histories.wait(now) }

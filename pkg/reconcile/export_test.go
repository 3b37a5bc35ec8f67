package reconcile

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/plan"
)

// CheckKept returns an error if the cached plan of an Application differs from a new plan of
// the same spec and learned values. A difference means that a pass has changed the plan or its
// inputs. stored is the Application on the hub.
func (r *Reconciler) CheckKept(stored *application.Application) error {
	name := stored.NamespacedName
	known := r.memories.byID[name]
	if known == nil || known.plan == nil || known.plan.Inputs.Spec != stored.Spec.Digest() {
		return nil
	}
	kept := known.plan
	app := &application.Application{NamespacedName: name, UID: known.uid, Spec: stored.Spec, Learned: kept.Inputs.Learned, ServiceAccount: stored.ServiceAccount}
	app.Spec.Fetched = kept.Inputs.Fetched
	fresh, err := (*plan.Cache)(nil).Of(app)
	if err != nil {
		return err
	}
	objects := fresh.Drafts()
	if err := (planPhase{kinds: r.Kinds, conclusion: r.conclusion()}).locate(app, objects); err != nil {
		return nil //nolint:nilerr // the test has moved the target: the pass planned nothing
	}
	if err := fresh.Complete(app, objects); err != nil {
		return err
	}
	if !reflect.DeepEqual(kept, fresh) {
		return fmt.Errorf("the plan that is kept of %s has become\n%#v\nand not\n%#v", name, kept, fresh)
	}
	return known.checkPublished(stored, objects)
}

// checkPublished returns an error if the published status differs from one that is computed
// from the objects.
func (m *memory) checkPublished(stored *application.Application, objects []plan.Object) error {
	last := m.published
	if last == nil || last.version != stored.Version || last.plan != m.plan {
		return nil // the cached status is not used
	}
	var applied, observed []map[string]any
	for i := range objects {
		planned := objects[i]
		if planned.Revision != last.revisions[i] {
			return nil // of a later plan, or with newly learned values: not used
		}
		applied = append(applied, planned.Desired())
		observed = append(observed, planned.AsWritten(plan.WithoutMarks(last.seen[i].Fields())))
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

// OtherHistory reserves the turn for another Application's write.
func (r *Reconciler) OtherHistory(now time.Time) { r.turns.Reserve(now) }

// Delta holds the objects of a delta by their index.
type Delta struct {
	New      []int
	Modified []int
	Deleted  []manifest.ID
}

// Calculate compares objects of these identities with their observations.
func Calculate(planned []manifest.ID, observed []observer.Observation, held []manifest.ID) Delta {
	objects := make([]*object, len(planned))
	for i := range planned {
		objects[i] = &object{plan: plan.Object{Ref: manifest.Ref{ID: planned[i]}}, observed: observed[i]}
	}
	indices := func(of []*object) (found []int) {
		for _, o := range of {
			found = append(found, slices.Index(objects, o))
		}
		return found
	}
	d := deltaOf(objects, held)
	return Delta{New: indices(d.missing), Modified: indices(d.differing), Deleted: d.unwanted}
}

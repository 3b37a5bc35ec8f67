package reconcile

import (
	"reflect"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// keptPlan is what an Application wants, with what that was computed from: spec and
// learned values are all that goes into it, and into what is completed the place of
// each resource on the target, too. Name, namespace and UID are those of the memory
// that keeps it.
//
// Nobody changes a value in it: passes change resources of their own, which share the
// objects.
type keptPlan struct {
	spec    application.Spec
	learned []map[string]any

	// mangled is the schema of what was fetched: of all else admission publishes it.
	mangled schema.Set
	secrets []mutate.HookSecret
	// drafted are the resources before the target was asked for their places.
	drafted []resource
	// completed are the same at their last places, without a revision where there was none.
	completed []resource
}

// of gives the plan of an Application: this one, if it was computed from the same.
// The error is that of a spec that is refused.
func (k *keptPlan) of(app *application.Application) (*keptPlan, error) {
	if k != nil && k.spec == app.Spec && reflect.DeepEqual(k.learned, app.Learned) {
		k.spec, k.learned = app.Spec, app.Learned // the former texts need not be kept beside these
		return k, nil
	}
	desired, refusals := mutate.Desire(app.Spec, app.Learned)
	if err := refusedBy(refusals); err != nil {
		return nil, err
	}
	drafted, err := resourcesOf(desired)
	if err != nil {
		return nil, err
	}
	for i := range drafted {
		if reflect.DeepEqual(drafted[i].manifest, drafted[i].desired) { // nothing was learned: one of them is enough
			drafted[i].manifest = drafted[i].desired
		}
	}
	kept := &keptPlan{
		spec: app.Spec, learned: app.Learned, secrets: desired.Secrets,
		drafted: drafted, completed: make([]resource, len(drafted)),
	}
	if app.Spec.Fetched != "" {
		kept.mangled = desired.Mangled
	}
	return kept, nil
}

// complete refines resources that were located. What was completed at the same place
// is taken as it was.
func (k *keptPlan) complete(app *application.Application, located []resource) error {
	for i := range located {
		unserved := located[i].unserved
		if k.completed[i].Revision == "" || k.completed[i].Ref != located[i].Ref {
			located[i].marks = application.Marks(app.NamespacedName, app.UID, located[i].ID)
			if err := located[i].complete(app); err != nil {
				return err
			}
			located[i].forms = slices.Clip(located[i].forms) // whoever appends has a slice of his own
			k.completed[i] = located[i]
			k.completed[i].unserved = nil
		}
		located[i] = k.completed[i]
		located[i].unserved = unserved
	}
	return nil
}

package reconcile

import (
	"reflect"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// keptPlan is what an Application wants, with what that was computed from: spec and
// learned values are all that goes into it, and where the target has its resources.
// Name, namespace and UID are those of the memory that keeps it.
//
// Nobody changes a value in it: passes change resources of their own. Its objects are
// packed, and of the texts there are digests: each is kept as long as the Application
// is, and looked at when something has to be done.
type keptPlan struct {
	spec    string
	fetched string
	learned []map[string]any

	// mangled is the schema of what was fetched: of all else admission publishes it.
	mangled schema.Set
	secrets []mutate.HookSecret
	// resources are at their last places, without a revision, and not packed yet, where
	// there was none.
	resources []resource
}

// of gives the plan of an Application: this one, if it was computed from the same.
// The error is that of a spec that is refused.
func (k *keptPlan) of(app *application.Application) (*keptPlan, error) {
	spec := app.Spec.Digest()
	if k != nil && k.spec == spec && k.fetched == app.Spec.Fetched && reflect.DeepEqual(k.learned, app.Learned) {
		return k, nil
	}
	desired, refusals := mutate.Desire(app.Spec, app.Learned)
	if err := refusedBy(refusals); err != nil {
		return nil, err
	}
	resources, err := resourcesOf(desired)
	if err != nil {
		return nil, err
	}
	kept := &keptPlan{
		spec: spec, fetched: app.Spec.Fetched, learned: app.Learned, secrets: desired.Secrets,
		resources: resources,
	}
	if app.Spec.Fetched != "" {
		kept.mangled = desired.Mangled
	}
	return kept, nil
}

// drafted gives the resources as they were before the target was asked for their places.
func (k *keptPlan) drafted() []resource {
	drafted := make([]resource, len(k.resources))
	for i := range k.resources {
		drafted[i] = k.resources[i].drafted()
	}
	return drafted
}

// complete refines resources that were located. What was completed at the same place
// is taken as it was.
func (k *keptPlan) complete(app *application.Application, located []resource) error {
	for i := range located {
		unserved := located[i].unserved // which is nobody's to remember
		if k.resources[i].Revision == "" || k.resources[i].Ref != located[i].Ref {
			located[i].owner, located[i].ownerUID = app.NamespacedName, app.UID
			if err := located[i].complete(app); err != nil {
				return err
			}
			located[i].forms = slices.Clip(located[i].forms) // whoever appends has a slice of his own
			k.resources[i] = located[i].atRest()
			k.resources[i].unserved = nil
			continue
		}
		located[i] = k.resources[i]
		located[i].unserved = unserved
	}
	return nil
}

package reconcile

import (
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Expected is one object of an Application as its agent is to keep it, for whoever
// looks at it without an agent.
type Expected struct {
	// ID has the namespace that the manifest says, if it says one.
	ID manifest.ID
	// Schema is the observer schema with what is known of the type, and of how the API
	// server has written the values; Mangled is that which is published.
	Schema, Mangled schema.Schema
	// Manifest is what the user wrote, Desired that with what was learned. Neither has
	// the marks, which are those of [application.Marks] for where the object is.
	Manifest, Desired map[string]any
	// LastObserved and Learned are its entries in these documents, nil if there is none.
	LastObserved, Learned map[string]any
}

// Expect gives the objects of an Application in the order of its manifest, without
// the Secrets of hooks, whose values the agent alone knows. The error is that of a
// spec that is refused.
func Expect(app *application.Application) ([]Expected, error) {
	desired, refusals := mutate.Desire(app.Spec, app.Learned)
	if err := refusedBy(refusals); err != nil {
		return nil, err
	}
	resources, err := resourcesOf(desired)
	if err != nil {
		return nil, err
	}
	resources = resources[:len(resources)-len(desired.Secrets)]
	expected := make([]Expected, len(resources))
	for i := range resources {
		r := &resources[i]
		if err := r.complete(app); err != nil {
			return nil, err
		}
		expected[i] = Expected{
			ID: r.ID, Schema: r.Schema, Mangled: r.mangled, Manifest: r.manifest(), Desired: r.desired(),
			LastObserved: entryOf(app.LastObserved.Objects(), r.manifest(), app.Namespace), Learned: entryOf(app.Learned, r.manifest(), app.Namespace),
		}
	}
	return expected, nil
}

package plan

import (
	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Expected is one object of an Application as its agent computes it, for programs beside the agent.
type Expected struct {
	// ID has the namespace of the manifest.
	ID manifest.ID
	// Schema is the observer schema, refined by the type and by the forms in which the API server
	// stores values. Mangled is the published one.
	Schema, Mangled schema.Schema
	// Manifest is the user's resource, Desired is the same with learned values. Neither has the
	// marks, which [application.Marks] returns for the place of the object.
	Manifest, Desired map[string]any
	// Types describe a kind that is not built in, nil if they are not known.
	Types *apitypes.Types
	// LastObserved and Learned are its entries in these documents, nil if there is none.
	LastObserved, Learned map[string]any
}

// Expect returns the objects of an Application in the order of its manifest. It omits the Secrets
// of hooks, whose values only the agent knows. The error is ErrRefused.
func Expect(app *application.Application, typesOf TypesOf) ([]Expected, error) {
	desired, objects, err := desire(app)
	if err != nil {
		return nil, err
	}
	objects = objects[:len(objects)-len(desired.Secrets)]
	expected := make([]Expected, len(objects))
	for i := range objects {
		o := &objects[i]
		o.Types = typesOf(o.ID)
		if err := o.complete(app); err != nil {
			return nil, err
		}
		expected[i] = Expected{
			ID: o.ID, Types: o.Types, Schema: o.Schema, Mangled: o.Mangled, Manifest: o.Manifest(), Desired: o.Desired(),
			LastObserved: EntryOf(app.LastObserved.Objects(), o.Manifest(), app.Namespace), Learned: EntryOf(app.Learned, o.Manifest(), app.Namespace),
		}
	}
	return expected, nil
}

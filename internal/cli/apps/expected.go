package apps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Expect returns the desired objects of an Application. Values that were learned on another
// cluster do not count. typesOf returns the types of an object whose kind is not built in.
func Expect(app *application.Application, typesOf plan.TypesOf) ([]plan.Expected, error) {
	if app.Status.ClusterName() != app.Cluster {
		app.Learned, app.LastObserved = nil, application.Published{}
	}
	expected, err := plan.Expect(app, typesOf)
	if err != nil {
		return nil, fmt.Errorf("the Application %s: %w", app.NamespacedName, err)
	}
	return expected, nil
}

// GetExpected reads an Application and returns its desired objects. It warns if the agent
// does not act on them, or if they are incomplete.
func GetExpected(ctx context.Context, e *env.Environment, name string) (*application.Application, []plan.Expected, error) {
	stored, err := GetReadable(ctx, e, name)
	if err != nil {
		return nil, nil, err
	}
	app := stored.App
	if !stored.IsAdmitted() {
		fmt.Fprintf(e.ErrOut, "the Application %s was never admitted, so that no agent carries it out: see kubectl krake describe %s\n", app.NamespacedName, app.Name)
	}
	if damaged := app.Damaged[application.LearnedKey]; damaged != nil {
		fmt.Fprintf(e.ErrOut, "what was learned for the Application %s cannot be read, and is left out: %s\n", app.NamespacedName, env.OneLine(damaged.Error()))
	}
	expected, err := Expect(app, env.TypesOn(e.ObjectsOf, app.Cluster))
	return app, expected, err
}

// Chosen returns the objects that a name KIND/NAME selects, or all without a name.
func Chosen(expected []plan.Expected, named string) ([]plan.Expected, error) {
	if named == "" {
		return expected, nil
	}
	kind, name, err := env.KindName(named)
	if err != nil {
		return nil, err
	}
	var found []plan.Expected
	var others []string
	for _, e := range expected {
		if e.ID.Name == name && isOfKind(e.ID, kind) {
			found = append(found, e)
		}
		others = append(others, env.ResourceName(e.ID))
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the Application has no object %s: it has %s", named, strings.Join(others, ", "))
	}
	return found, nil
}

// isOfKind reports whether a name such as deployment, deployments or deployments.apps means a
// kind. It does not know the short names of an API server.
func isOfKind(id manifest.ID, kind string) bool {
	plural, singular := meta.UnsafeGuessKindToResource(id.GroupVersionKind())
	name, group, grouped := strings.Cut(strings.ToLower(kind), ".")
	return (name == plural.Resource || name == singular.Resource) && (!grouped || group == id.GroupVersionKind().Group)
}

// Leaving returns the objects that the Application holds and no longer wants. The Secrets of
// its hooks are still wanted, although only the agent knows them.
func Leaving(app *application.Application, expected []plan.Expected) []manifest.ID {
	return slices.DeleteFunc(slices.Clone(app.Inventory), func(held manifest.ID) bool {
		return IsOfHook(app, held) || slices.ContainsFunc(expected, func(e plan.Expected) bool {
			return lens.IsNamesake(held, e.ID) && (held.Namespace == "" || held.Namespace == lens.Placed(app, e.ID).Namespace)
		})
	})
}

// IsOfHook reports whether an object is a Secret of a hook of the Application.
func IsOfHook(app *application.Application, held manifest.ID) bool {
	return held.APIVersion == "v1" && held.Kind == "Secret" && slices.ContainsFunc(app.Spec.Hooks.Enabled(), func(hook application.Hook) bool {
		return held.Name == application.TokenSecret(app.Name, hook) || held.Name == application.CertsSecret(app.Name, hook)
	})
}

// Becomes says what the agent would do with an object that left the Application.
func Becomes(app *application.Application, id manifest.ID) string {
	if plan.IsReleased(app, id) {
		return "would be left where it is, without the marks of the Application"
	}
	return "would be deleted"
}

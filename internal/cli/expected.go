package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/plan"
)

// expect returns the objects of an Application as its agent is to keep them. What was
// learned on another cluster says nothing of the one where it is to be.
func expect(app *application.Application) ([]plan.Expected, error) {
	if app.Status.ClusterName() != app.Cluster {
		app.Learned, app.LastObserved = nil, application.Published{}
	}
	expected, err := plan.Expect(app)
	if err != nil {
		return nil, fmt.Errorf("the Application %s: %w", app.NamespacedName, err)
	}
	return expected, nil
}

// getExpected reads an Application and returns its objects as its agent is to keep them. It
// warns of what may be misunderstood of it.
func (e *environment) getExpected(ctx context.Context, name string) (*application.Application, []plan.Expected, error) {
	stored, err := e.getReadable(ctx, name)
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
	return app, expected, err
}

// chosen returns the objects that are named as KIND/NAME, all without a name.
func chosen(expected []plan.Expected, named string) ([]plan.Expected, error) {
	if named == "" {
		return expected, nil
	}
	kind, name, err := kindName(named)
	if err != nil {
		return nil, err
	}
	var found []plan.Expected
	var others []string
	for _, e := range expected {
		if e.ID.Name == name && isOfKind(e.ID, kind) {
			found = append(found, e)
		}
		others = append(others, resourceName(e.ID))
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the Application has no object %s: it has %s", named, strings.Join(others, ", "))
	}
	return found, nil
}

// resourceName returns "deployment/web".
func resourceName(id manifest.ID) string { return strings.ToLower(id.Kind) + "/" + id.Name }

// isOfKind reports whether a kind is meant by deployment, deployments, deployments.apps and
// the like. The short names of an API server are not known here.
func isOfKind(id manifest.ID, kind string) bool {
	plural, singular := meta.UnsafeGuessKindToResource(id.GroupVersionKind())
	name, group, grouped := strings.Cut(strings.ToLower(kind), ".")
	return (name == plural.Resource || name == singular.Resource) && (!grouped || group == id.GroupVersionKind().Group)
}

// placed returns the identity of an object with the namespace where it is, by what the
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

// isNamesake reports whether two objects are of a kind and a name, whatever the version.
func isNamesake(a, b manifest.ID) bool {
	return a.GroupVersionKind().GroupKind() == b.GroupVersionKind().GroupKind() && a.Name == b.Name
}

// placedDesired returns a desired object. If it has a namespace, that is the one of the live
// object.
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

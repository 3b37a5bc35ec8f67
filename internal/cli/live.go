package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/plan"
)

// live reads an object, nil if there is none. The namespace does not count where the
// kind has none.
func (o objects) live(ctx context.Context, id manifest.ID) (map[string]any, error) {
	gvk := id.GroupVersionKind()
	mapping, err := o.kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("read %s: the cluster with the objects does not serve it: %w", id, err)
	}
	return o.read(ctx, mapping, id, id.Namespace)
}

// read reads an object. Home is the namespace of one that says none.
func (o objects) read(ctx context.Context, mapping *meta.RESTMapping, id manifest.ID, home string) (map[string]any, error) {
	id.Namespace = cmp.Or(id.Namespace, home)
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		id.Namespace = ""
	}
	client := o.Resource(mapping.Resource).Namespace(id.Namespace)
	object, err := client.Get(ctx, id.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", id, err)
	}
	return object.Object, nil
}

// kindName splits KIND/NAME.
func kindName(text string) (kind, name string, err error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is not of the form KIND/NAME, as deployment/web", text)
	}
	return kind, name, nil
}

// mappingOf finds a kind by all names that kubectl knows it by.
func (o objects) mappingOf(name string) (*meta.RESTMapping, error) {
	var gvk schema.GroupVersionKind
	full, resource := schema.ParseResourceArg(strings.ToLower(name))
	if full != nil {
		gvk, _ = o.kinds.KindFor(*full)
	}
	if gvk.Empty() {
		var err error
		if gvk, err = o.kinds.KindFor(resource.WithVersion("")); err != nil {
			return nil, fmt.Errorf("find the kind %s: %w", name, err)
		}
	}
	return o.kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// chosen gives those of the objects that are named as KIND/NAME, all if nothing is.
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
		others = append(others, strings.ToLower(e.ID.Kind)+"/"+e.ID.Name)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the Application has no object %s: it has %s", named, strings.Join(others, ", "))
	}
	return found, nil
}

// isOfKind tells if a kind is meant by deployment, deployments, deployments.apps and
// the like. The short names of an API server are not known here.
func isOfKind(id manifest.ID, kind string) bool {
	plural, singular := meta.UnsafeGuessKindToResource(id.GroupVersionKind())
	name, group, grouped := strings.Cut(strings.ToLower(kind), ".")
	return (name == plural.Resource || name == singular.Resource) && (!grouped || group == id.GroupVersionKind().Group)
}

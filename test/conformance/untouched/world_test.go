package untouched_test

import (
	"fmt"
	"maps"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/kit"
)

// ourselves is the field manager of the creations.
const ourselves = "untouched"

// world is one test's namespace on the API server.
type world struct {
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	namespace string
	options   metav1.CreateOptions
}

func newWorld(t *testing.T, namespace string) *world {
	t.Helper()
	w := &world{
		mapper:    restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(server.Discovery())),
		namespace: namespace, options: metav1.CreateOptions{FieldManager: ourselves},
	}
	w.ensureNamespace(t, namespace)
	return w
}

// place finds where the resource is served, and creates its namespace.
func (w *world) place(t *testing.T, desired object) manifest.Ref {
	t.Helper()
	id, err := manifest.Identify(desired)
	kit.Must(t, err)
	gvk := id.GroupVersionKind()
	mapping, err := w.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatalf("cannot find the resource of %s: %v", id, err)
	}
	switch {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		id.Namespace = ""
	case id.Namespace == "":
		id.Namespace = w.namespace
	default:
		w.ensureNamespace(t, id.Namespace)
	}
	return manifest.Ref{ID: id, Resource: mapping.Resource}
}

func (w *world) placed(desired object, ref manifest.Ref) *unstructured.Unstructured {
	body := maps.Clone(desired)
	placed := &unstructured.Unstructured{Object: body}
	metadata := maps.Clone(desired["metadata"].(object))
	if metadata["namespace"] = ref.Namespace; ref.Namespace == "" {
		delete(metadata, "namespace")
	}
	body["metadata"] = metadata
	return placed
}

func (w *world) client(ref manifest.Ref) dynamic.ResourceInterface {
	if ref.Namespace == "" {
		return server.Dynamic.Resource(ref.Resource)
	}
	return server.Dynamic.Resource(ref.Resource).Namespace(ref.Namespace)
}

func (w *world) ensureNamespace(t *testing.T, name string) {
	t.Helper()
	w.ensure(t, kit.Namespaces, object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}})
}

func (w *world) ensure(t *testing.T, resource gvr.GroupVersionResource, desired object) {
	t.Helper()
	_, err := server.Dynamic.Resource(resource).Create(t.Context(), &unstructured.Unstructured{Object: desired}, w.options)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// drift compares all resources with those on the cluster now, and adds to each
// difference the manager that made it.
func drift(t *testing.T, resources []resource) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, r := range resources {
		live, err := r.client.Get(t.Context(), r.Name, metav1.GetOptions{})
		if err != nil {
			found[r.String()] = err.Error()
			continue
		}
		for _, difference := range r.answered.Compare(r.desired, live.Object) {
			who := blame.Of(live.Object, []schema.Path{difference.Path}, ourselves)
			found[fmt.Sprintf("%s %s", r.ID, difference.Path)] = fmt.Sprintf("%s, by %s", difference.Kind, who)
		}
	}
	return found
}

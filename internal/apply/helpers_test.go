package apply_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/internal/apply"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

const ourselves = "ourselves"

// fixture is one test's namespace with another client that writes there, and the Cluster under
// test, whose requests are recorded.
type fixture struct {
	*apply.Cluster

	sent []request
	// answered is called after the server has answered a write, before the Cluster gets the
	// answer. It may be nil.
	answered  func()
	somebody  dynamic.Interface
	namespace string
}

// request is a recorded write.
type request struct {
	method string
	body   string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{somebody: dynamic.NewForConfigOrDie(rest.CopyConfig(server))}
	recorded := rest.CopyConfig(server)
	recorded.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next, f} })
	f.Cluster = apply.New(dynamic.NewForConfigOrDie(recorded), ourselves, func(string) {})

	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "apply-"},
	}}
	made, err := f.somebody.Resource(gvr.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(t.Context(), namespace, metav1.CreateOptions{})
	kit.Must(t, err)
	f.namespace = made.GetName()
	return f
}

type recorder struct {
	next http.RoundTripper
	*fixture
}

func (r recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return r.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.sent = append(r.sent, request{req.Method, strings.TrimSpace(string(body))})
	response, err := r.next.RoundTrip(req)
	if r.answered != nil {
		r.answered()
	}
	return response, err
}

func (f *fixture) ref(name string) manifest.Ref {
	return manifest.Ref{
		ID:       manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.namespace, Name: name},
		Resource: gvr.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	}
}

// object is a ConfigMap with two fields: a is ours, b belongs to others.
func (f *fixture) object(name string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": f.namespace},
		"data":     map[string]any{"a": "1", "b": "1"},
	}
}

// create creates the object as the agent, and clears the recorded requests.
func (f *fixture) create(t *testing.T, name string) map[string]any {
	t.Helper()
	live, err := f.Create(t.Context(), f.ref(name), f.object(name))
	kit.Must(t, err)
	f.sent = nil
	return live
}

func (f *fixture) configMaps() dynamic.ResourceInterface {
	return f.somebody.Resource(f.ref("").Resource).Namespace(f.namespace)
}

// change changes the object as another client, by a merge patch.
func (f *fixture) change(t *testing.T, name, patch string) map[string]any {
	t.Helper()
	live, err := f.configMaps().Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	kit.Must(t, err)
	return live.Object
}

// get returns the object, or nil if it does not exist.
func (f *fixture) get(t *testing.T, name string) map[string]any {
	t.Helper()
	list, err := f.configMaps().List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	kit.Must(t, err)
	if len(list.Items) == 0 {
		return nil
	}
	return list.Items[0].Object
}

// recreate deletes the object as another client, and creates another of that name.
func (f *fixture) recreate(t *testing.T, name string) map[string]any {
	t.Helper()
	kit.Must(t, f.configMaps().Delete(t.Context(), name, metav1.DeleteOptions{}))
	live, err := f.configMaps().Create(t.Context(), &unstructured.Unstructured{Object: f.object(name)}, metav1.CreateOptions{})
	kit.Must(t, err)
	return live.Object
}

// patchA repairs data.a. live is the last known state.
func (f *fixture) patchA(t *testing.T, live map[string]any) map[string]any {
	t.Helper()
	after, err := f.Patch(t.Context(), f.ref("a"), live, f.setA)
	kit.Must(t, err)
	return after
}

// setA is the repair that sets data.a to "1".
func (f *fixture) setA(live map[string]any) (schema.Patch, error) {
	if data(live)["a"] == "1" {
		return nil, nil
	}
	return schema.Patch{{Op: "replace", Path: "/data/a", Value: "1"}}, nil
}

// mustDelete deletes the object, and checks that it is gone.
func (f *fixture) mustDelete(t *testing.T, ref manifest.Ref, proof apply.Proof) {
	t.Helper()
	if left, err := f.Delete(t.Context(), ref, proof); err != nil || left != nil {
		t.Errorf("left is %v, error %v", left, err)
	}
}

func data(live map[string]any) map[string]any {
	values, _ := live["data"].(map[string]any)
	return values
}

func version(live map[string]any) string {
	return (&unstructured.Unstructured{Object: live}).GetResourceVersion()
}

func uid(live map[string]any) types.UID {
	return (&unstructured.Unstructured{Object: live}).GetUID()
}

// besides returns the object without the fields that every write changes.
func besides(live map[string]any) map[string]any {
	object := (&unstructured.Unstructured{Object: live}).DeepCopy()
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	return object.Object
}

// checkSent compares the recorded requests.
func (f *fixture) checkSent(t *testing.T, want ...request) {
	t.Helper()
	check.Equal(t, "requests", want, f.sent, cmp.AllowUnexported(request{}))
}

// fieldsOf returns the fields that a manager owns of an object, as in managedFields.
func fieldsOf(t *testing.T, live map[string]any, manager string) map[string]any {
	t.Helper()
	var fields map[string]any
	for _, entry := range (&unstructured.Unstructured{Object: live}).GetManagedFields() {
		if entry.Manager != manager {
			continue
		}
		kit.Must(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
	}
	return fields
}

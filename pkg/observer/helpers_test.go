package observer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

const (
	// timeout is how long an event may take: long, because machines are slow.
	timeout = 60 * time.Second
	// label is what the informers select by.
	label = "example.com/owned"
)

var (
	configMaps = gvr.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services   = gvr.GroupVersionResource{Version: "v1", Resource: "services"}
	namespaces = gvr.GroupVersionResource{Version: "v1", Resource: "namespaces"}

	web      = Owner{Namespace: "owners", Name: "web"}
	other    = Owner{Namespace: "owners", Name: "other"}
	sentinel = Owner{Namespace: "owners", Name: "sentinel"}
)

// fixture is one test's Observers, in a namespace of its own, and who was notified.
type fixture struct {
	*Observers

	client    dynamic.Interface
	namespace string

	mu      sync.Mutex
	heard   []Owner
	flushed int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	client, err := dynamic.NewForConfig(server)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{client: client}
	f.Observers = New(t.Context(), Options{Client: client, Selector: label, Notify: f.notify, Now: time.Now})
	made, err := client.Resource(namespaces).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "observer-"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.namespace = made.GetName()
	return f
}

func (f *fixture) notify(owner Owner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, owner)
}

func (f *fixture) count(owner Owner) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, heard := range f.heard {
		if heard == owner {
			n++
		}
	}
	return n
}

// started gives a fixture in which web observes the object "web", which is as
// desired and was handed to Start, and in which flush works.
func started(t *testing.T) (f *fixture, live map[string]any) {
	t.Helper()
	f = newFixture(t)
	created := f.create(t, "sentinel")
	f.observe(t, sentinel, f.target("sentinel"))
	f.Start(sentinel, []Target{f.target("sentinel")}, []map[string]any{created})

	live = f.create(t, "web")
	f.observe(t, web, f.target("web"))
	f.Start(web, []Target{f.target("web")}, []map[string]any{live})
	f.flush(t)
	f.expect(t)
	return f, live
}

// observe gives what is known once the kind is synced.
func (f *fixture) observe(t *testing.T, owner Owner, targets ...Target) []Observation {
	t.Helper()
	var current []Observation
	eventually(t, func() (string, error) {
		var err error
		current, err = f.Observe(owner, targets)
		if errors.Is(err, ErrNotSynced) {
			return err.Error(), nil
		}
		return "", err
	})
	return current
}

// flush returns when all events of ConfigMaps up to now were handled: those of
// one kind come in their order, and it waits for one that it causes.
func (f *fixture) flush(t *testing.T) {
	t.Helper()
	before := f.count(sentinel)
	f.flushed++
	f.change(t, "sentinel", fmt.Sprintf(`{"data": {"a": "flush %d"}}`, f.flushed))
	eventually(t, func() (string, error) {
		if f.count(sentinel) > before {
			return "", nil
		}
		return "the sentinel has not heard of its change", nil
	})
}

// expect compares who was notified since the last call, how often does not
// matter, and forgets it.
func (f *fixture) expect(t *testing.T, want ...Owner) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var got []Owner
	for _, owner := range f.heard {
		if owner != sentinel && !slices.Contains(got, owner) {
			got = append(got, owner)
		}
	}
	slices.SortFunc(got, func(a, b Owner) int { return -cmpNames(a, b) })
	f.heard = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notified (-want +got):\n%s", diff)
	}
}

func cmpNames(a, b Owner) int {
	if a.Name < b.Name {
		return -1
	}
	return 1
}

// eventually waits until there is nothing to complain about.
func eventually(t *testing.T, check func() (complaint string, err error)) {
	t.Helper()
	var complaint string
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		var err error
		complaint, err = check()
		return complaint == "", err
	})
	if err != nil {
		t.Fatalf("%v: %s", err, complaint)
	}
}

// ref is a ConfigMap.
func (f *fixture) ref(name string) manifest.Ref {
	return manifest.Ref{
		ID:       manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.namespace, Name: name},
		Resource: configMaps,
	}
}

// target wants data.a to be "1", and our label to be there; data.b is not observed.
func (f *fixture) target(name string) Target {
	return targetOf(f.ref(name), map[string]any{"data": map[string]any{"a": "1"}})
}

// targetOf observes the given fields, and our label beside them.
func targetOf(ref manifest.Ref, desired map[string]any) Target {
	desired["apiVersion"], desired["kind"], desired["metadata"] = ref.APIVersion, ref.Kind, map[string]any{"name": ref.Name}
	observed, err := schema.Default(desired)
	if err != nil {
		panic(err) // the reference has all that it needs
	}
	return Target{
		Ref:      ref,
		Schema:   observed,
		Marked:   observed.Observe("metadata", "labels", label),
		Desired:  manifest.Marks{Labels: map[string]string{label: "yes"}}.On(desired),
		Revision: "1",
	}
}

// revised is the target after a change of the spec that concerns data.b.
func revised(target Target) Target {
	target.Schema = target.Schema.Observe("data", "b")
	target.Marked = target.Marked.Observe("data", "b")
	target.Revision = "2"
	return target
}

// create creates a ConfigMap that is as its target desires.
func (f *fixture) create(t *testing.T, name string) map[string]any {
	t.Helper()
	live, err := f.client.Resource(configMaps).Namespace(f.namespace).Create(t.Context(), f.object(name), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live.Object
}

func (f *fixture) object(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": f.namespace, "labels": map[string]any{label: "yes"}},
		"data":     map[string]any{"a": "1", "b": "1"},
	}}
}

// change changes a ConfigMap by a merge patch.
func (f *fixture) change(t *testing.T, name, patch string) map[string]any {
	t.Helper()
	live, err := f.client.Resource(configMaps).Namespace(f.namespace).
		Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live.Object
}

func (f *fixture) delete(t *testing.T, name string) {
	t.Helper()
	if err := f.client.Resource(configMaps).Namespace(f.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// event has the observers see an object as if an event had brought it.
func (f *fixture) event(live map[string]any) {
	k := f.kindOf(configMaps)
	f.saw(k, f.look(configMaps, &unstructured.Unstructured{Object: live}))
}

func (f *fixture) kindOf(resource gvr.GroupVersionResource) *kind {
	f.Observers.mu.RLock()
	defer f.Observers.mu.RUnlock()
	return f.kinds[resource]
}

// last is what an owner last saw of a ConfigMap.
func (f *fixture) last(owner Owner, name string) Observation {
	f.Observers.mu.RLock()
	defer f.Observers.mu.RUnlock()
	return f.owners[owner].views[key{configMaps, f.namespace, name}].last
}

func uidOf(live map[string]any) types.UID {
	return (&unstructured.Unstructured{Object: live}).GetUID()
}

func versionOf(live map[string]any) string {
	return (&unstructured.Unstructured{Object: live}).GetResourceVersion()
}

package observer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// label is the label that the informers select.
const label = "example.com/owned"

var (
	configMaps = gvr.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services   = gvr.GroupVersionResource{Version: "v1", Resource: "services"}
	namespaces = gvr.GroupVersionResource{Version: "v1", Resource: "namespaces"}

	web      = Owner{Namespace: "owners", Name: "web"}
	other    = Owner{Namespace: "owners", Name: "other"}
	sentinel = Owner{Namespace: "owners", Name: "sentinel"}
)

// fixture has the Observers of one test, in a namespace of its own, and the notified owners.
type fixture struct {
	*Observers

	client    dynamic.Interface
	namespace string

	mu      sync.Mutex
	heard   []Owner
	flushed int
}

// newFixture connects Observers to the API server, perhaps through a transport of the test.
func newFixture(t *testing.T, change ...func(*Options, *rest.Config)) *fixture {
	t.Helper()
	f := &fixture{client: plane.Dynamic, namespace: kit.UniqueName("observer")}
	plane.CreateNamespace(t, f.namespace)
	f.Observers = New(t.Context(), f.options(t, change...))
	f.informers.missingPause, f.informers.askedPause = 100*time.Millisecond, 10*time.Millisecond
	f.resync.grace, f.resync.spread = 200*time.Millisecond, 100*time.Millisecond
	return f
}

func (f *fixture) options(t *testing.T, change ...func(*Options, *rest.Config)) Options {
	t.Helper()
	config := plane.RESTConfig()
	options := Options{Selector: label, Notify: f.notify, Now: time.Now, Logger: testr.New(t)}
	for _, change := range change {
		change(&options, config)
	}
	if ownerOf := options.OwnerOf; ownerOf != nil {
		options.OwnerOf = func(live map[string]any) (Owner, bool) {
			owner, ok := ownerOf(live)
			// Objects of other tests have owners of the same names.
			return owner, ok && (&unstructured.Unstructured{Object: live}).GetNamespace() == f.namespace
		}
	}
	options.Client, options.Metadata = dynamic.NewForConfigOrDie(config), metadata.NewForConfigOrDie(config)
	return options
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

// started returns a fixture in which web observes the object "web". The object matches and was
// passed to Start, and flush works.
func started(t *testing.T, change ...func(*Options, *rest.Config)) (f *fixture, live map[string]any) {
	t.Helper()
	f = newFixture(t, change...)
	f.has(t, sentinel, "sentinel")
	live = f.has(t, web, "web")
	f.flush(t)
	f.expect(t)
	return f, live
}

// has creates an object for its owner, which passes it to Start.
func (f *fixture) has(t *testing.T, owner Owner, name string) map[string]any {
	t.Helper()
	live := f.create(t, name)
	f.observe(t, owner, f.target(name))
	f.Start(owner, []Target{f.target(name)}, []map[string]any{live})
	return live
}

// observe returns the observations after the kinds are synced.
func (f *fixture) observe(t *testing.T, owner Owner, targets ...Target) []Observation {
	t.Helper()
	var current []Observation
	kit.EventuallyNil(t, func() error {
		current = f.Observe(owner, targets)
		var errs []error
		for _, known := range current {
			errs = append(errs, known.Err)
		}
		return errors.Join(errs...)
	})
	return current
}

// flush returns after all events of ConfigMaps so far were handled. The events of one kind
// arrive in order, and flush waits for an event that it causes.
func (f *fixture) flush(t *testing.T) {
	t.Helper()
	before := f.count(sentinel)
	f.flushed++
	f.change(t, "sentinel", fmt.Sprintf(`{"data": {"a": "flush %d"}}`, f.flushed))
	until(t, "the sentinel has not heard of its change", func() bool { return f.count(sentinel) > before })
}

// heardOf waits until exactly these owners are notified, and clears the record.
func (f *fixture) heardOf(t *testing.T, owners ...Owner) {
	t.Helper()
	for _, owner := range owners {
		until(t, owner.Name+" was not notified", func() bool { return f.count(owner) > 0 })
	}
	f.expect(t, owners...)
}

// expect compares the owners that were notified since the last call, whatever their number,
// and clears the record.
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
	slices.SortFunc(got, func(a, b Owner) int { return strings.Compare(b.Name, a.Name) })
	f.heard = nil
	check.Equal(t, "notified", want, got)
}

// until waits until done returns true.
func until(t *testing.T, complaint string, done func() bool) {
	t.Helper()
	kit.Eventually(t, func() string {
		if done() {
			return ""
		}
		return complaint
	})
}

// ref returns the reference of a ConfigMap.
func (f *fixture) ref(name string) manifest.Ref {
	return manifest.Ref{
		ID:       manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.namespace, Name: name},
		Resource: configMaps,
	}
}

// target wants data.a to be "1", and our label. It does not observe data.b.
func (f *fixture) target(name string) Target {
	return targetOf(f.ref(name), map[string]any{"data": map[string]any{"a": "1"}})
}

// service wants a Service.
func (f *fixture) service(name string) Target {
	return targetOf(manifest.Ref{
		ID:       manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: f.namespace, Name: name},
		Resource: services,
	}, map[string]any{"spec": map[string]any{"type": "ClusterIP"}})
}

// targetOf observes the given fields, and also our label.
func targetOf(ref manifest.Ref, desired map[string]any) Target {
	desired["apiVersion"], desired["kind"], desired["metadata"] = ref.APIVersion, ref.Kind, map[string]any{"name": ref.Name}
	observed, err := schema.Default(desired)
	if err != nil {
		panic(err) // the reference is complete
	}
	return Target{
		Ref:      ref,
		Schema:   observed,
		Marked:   observed.Observe("metadata", "labels", label),
		Desired:  manifest.Pack(manifest.Marks{Labels: map[string]string{label: "yes"}}.On(desired)),
		Revision: "1",
	}
}

// wanting returns the target with other data.
func wanting(target Target, data map[string]any) Target {
	desired := target.Desired.Fields()
	desired["data"] = data
	target.Desired = manifest.Pack(desired)
	return target
}

// revised returns the target after a change of the spec to data.b.
func revised(target Target) Target {
	target.Schema = target.Schema.Observe("data", "b")
	target.Marked = target.Marked.Observe("data", "b")
	target.Revision = "2"
	return target
}

// create creates a ConfigMap that matches its target.
func (f *fixture) create(t *testing.T, name string) map[string]any {
	t.Helper()
	live, err := f.client.Resource(configMaps).Namespace(f.namespace).Create(t.Context(), f.object(name), metav1.CreateOptions{})
	kit.Must(t, err)
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
	kit.Must(t, err)
	return live.Object
}

func (f *fixture) delete(t *testing.T, name string) {
	t.Helper()
	kit.Must(t, f.client.Resource(configMaps).Namespace(f.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// event makes the observers handle an object like an event.
func (f *fixture) event(live map[string]any) {
	f.handle(f.informers.source.transform(configMaps, &unstructured.Unstructured{Object: live}))
}

// handle passes a decoded object to the observers.
func (f *fixture) handle(looked any) {
	k := f.kindOf(configMaps)
	f.registry.saw(k, k.current, nil, looked)
}

// disappear passes the deletion of an object to the observers.
func (f *fixture) disappear(looked any) {
	k := f.kindOf(configMaps)
	f.registry.lost(k, k.current, looked)
}

func (f *fixture) kindOf(resource gvr.GroupVersionResource) *kind {
	f.registry.mu.RLock()
	defer f.registry.mu.RUnlock()
	return f.informers.kinds[scope{resource: resource}]
}

// running returns the informers of the observed kinds.
func (f *fixture) running() map[*informer]bool {
	f.registry.mu.RLock()
	defer f.registry.mu.RUnlock()
	running := map[*informer]bool{}
	for _, k := range f.informers.kinds {
		for _, i := range []*informer{k.current, k.next} {
			if i != nil {
				running[i] = true
			}
		}
	}
	return running
}

// last returns the last observation of a ConfigMap by an owner.
func (f *fixture) last(owner Owner, name string) Observation {
	f.registry.mu.RLock()
	defer f.registry.mu.RUnlock()
	return f.registry.owners[owner].views[key{configMaps, f.namespace, name}].last
}

func uidOf(live map[string]any) types.UID {
	return (&unstructured.Unstructured{Object: live}).GetUID()
}

func versionOf(live map[string]any) string {
	return (&unstructured.Unstructured{Object: live}).GetResourceVersion()
}

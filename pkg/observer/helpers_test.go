package observer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

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

// newFixture makes Observers of the API server, or of one that is behind a
// transport of the test's.
func newFixture(t *testing.T, change ...func(*Options, *rest.Config)) *fixture {
	t.Helper()
	client, err := dynamic.NewForConfig(server)
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.Resource(namespaces).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "observer-"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{client: client, namespace: made.GetName()}
	f.Observers = New(t.Context(), f.options(t, change...))
	f.missingPause, f.askedPause = 100*time.Millisecond, 10*time.Millisecond
	f.resyncGrace, f.resyncSpread = 200*time.Millisecond, 100*time.Millisecond
	return f
}

func (f *fixture) options(t *testing.T, change ...func(*Options, *rest.Config)) Options {
	t.Helper()
	config := rest.CopyConfig(server)
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
	var err error
	if options.Client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if options.Streams, err = NewStreams(config); err != nil {
		t.Fatal(err)
	}
	if options.Metadata, err = metadata.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
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

// started gives a fixture in which web observes the object "web", which is as
// desired and was handed to Start, and in which flush works.
func started(t *testing.T, change ...func(*Options, *rest.Config)) (f *fixture, live map[string]any) {
	t.Helper()
	f = newFixture(t, change...)
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

// observe gives what is known once the kinds are synced.
func (f *fixture) observe(t *testing.T, owner Owner, targets ...Target) []Observation {
	t.Helper()
	var current []Observation
	eventually(t, func() (string, error) {
		current = f.Observe(owner, targets)
		for _, known := range current {
			if complaint := said(known.Err); complaint != "" {
				return complaint, nil
			}
		}
		return "", nil
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
	until(t, "the sentinel has not heard of its change", func() bool { return f.count(sentinel) > before })
}

// heardOf waits until these owners, and no others, are notified, and forgets it.
func (f *fixture) heardOf(t *testing.T, owners ...Owner) {
	t.Helper()
	for _, owner := range owners {
		until(t, owner.Name+" was not notified", func() bool { return f.count(owner) > 0 })
	}
	f.expect(t, owners...)
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

// said is the complaint that an error is.
func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
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

// until waits until it is done.
func until(t *testing.T, complaint string, done func() bool) {
	t.Helper()
	eventually(t, func() (string, error) {
		if done() {
			return "", nil
		}
		return complaint, nil
	})
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

// service wants a Service.
func (f *fixture) service(name string) Target {
	return targetOf(manifest.Ref{
		ID:       manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: f.namespace, Name: name},
		Resource: services,
	}, map[string]any{"spec": map[string]any{"type": "ClusterIP"}})
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
		Desired:  manifest.Pack(manifest.Marks{Labels: map[string]string{label: "yes"}}.On(desired)),
		Revision: "1",
	}
}

// wanting is the target with other data.
func wanting(target Target, data map[string]any) Target {
	desired := target.Desired.Fields()
	desired["data"] = data
	target.Desired = manifest.Pack(desired)
	return target
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
	f.handle(f.look(configMaps, &unstructured.Unstructured{Object: live}))
}

// handle hands over what was looked at.
func (f *fixture) handle(looked any) {
	k := f.kindOf(configMaps)
	f.saw(k, k.current, nil, looked)
}

// disappear is the event of an object that is lost.
func (f *fixture) disappear(looked any) {
	k := f.kindOf(configMaps)
	f.lost(k, k.current, looked)
}

func (f *fixture) kindOf(resource gvr.GroupVersionResource) *kind {
	f.Observers.mu.RLock()
	defer f.Observers.mu.RUnlock()
	return f.kinds[scope{resource: resource}]
}

// informers are those of the kinds that are observed.
func (f *fixture) informers() map[*informer]bool {
	f.Observers.mu.RLock()
	defer f.Observers.mu.RUnlock()
	running := map[*informer]bool{}
	for _, k := range f.kinds {
		for _, i := range []*informer{k.current, k.next} {
			if i != nil {
				running[i] = true
			}
		}
	}
	return running
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

// streamsOf gives the same bytes to whoever watches.
func streamsOf(body io.Reader) Streams {
	return func(context.Context, gvr.GroupVersionResource, string, metav1.ListOptions) (io.ReadCloser, error) {
		if closer, ok := body.(io.ReadCloser); ok {
			return closer, nil
		}
		return io.NopCloser(body), nil
	}
}

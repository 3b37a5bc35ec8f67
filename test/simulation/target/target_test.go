package target_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/simulation/target"
)

const namespace = "krake-target"

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services   = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	leases     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	eventsOf   = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

// client asks one of the two servers, as an agent does, and writes down the
// answers.
type client struct {
	dynamic.Interface

	metadata  metadata.Interface
	leases    typed.LeasesGetter
	discovery discovery.DiscoveryInterface

	answers []string
	// names are what stands for versions and UIDs, which differ from server to
	// server: v1, v2 and so on, in the order in which they are met.
	names map[string]string
}

// clients gives one of each server. The namespace is there and empty.
func clients(t *testing.T) (fake, genuine *client) {
	t.Helper()
	admin, err := kubernetes.NewForConfig(apiServer)
	if err != nil {
		t.Fatal(err)
	}
	name := namespace + "-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	if _, err := admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	server := target.New()
	server.AddNamespace(name)
	return newClient(t, server.Config()), newClient(t, apiServer)
}

func newClient(t *testing.T, config *rest.Config) *client {
	t.Helper()
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := typed.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &client{Interface: objects, metadata: listed, leases: leases, discovery: served, names: map[string]string{}}
}

func (c *client) answer(what string, answer runtime.Object, err error) {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		c.answers = append(c.answers, fmt.Sprintf("%s: %d %s", what, status.Status().Code, status.Status().Reason))
	case err != nil:
		c.answers = append(c.answers, fmt.Sprintf("%s: %v", what, err))
	default:
		c.answers = append(c.answers, what+": "+c.text(answer))
	}
}

// text is an object, without what differs from server to server.
func (c *client) text(object runtime.Object) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err.Error()
	}
	shown := unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	if items, ok := shown.Object["items"]; ok {
		return c.list(items)
	}
	c.mask(shown.Object)
	text, err := shown.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// list is a list of objects. In protobuf, they do not say of what kind they are.
func (c *client) list(items any) string {
	texts := []string{"a list"}
	listed, _ := items.([]any)
	for _, item := range listed {
		content, _ := item.(map[string]any)
		delete(content, "apiVersion")
		delete(content, "kind")
		c.mask(content)
		text, err := json.Marshal(content)
		texts = append(texts, string(text), fmt.Sprint(err))
	}
	return strings.Join(texts, "\n")
}

func (c *client) mask(content map[string]any) {
	object := unstructured.Unstructured{Object: content}
	object.SetResourceVersion(c.name("v", object.GetResourceVersion()))
	object.SetUID(types.UID(c.name("u", string(object.GetUID()))))
	object.SetManagedFields(nil)
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	for _, address := range []string{"clusterIP", "clusterIPs"} {
		if _, ok, _ := unstructured.NestedFieldNoCopy(content, "spec", address); ok {
			_ = unstructured.SetNestedField(content, "an address", "spec", address) // it is there
		}
	}
}

func (c *client) name(prefix, value string) string {
	if value == "" {
		return ""
	}
	if _, ok := c.names[value]; !ok {
		c.names[value] = fmt.Sprintf("%s%d", prefix, len(c.names))
	}
	return c.names[value]
}

// compare has both servers asked the same, and compares what they answer.
func compare(t *testing.T, ask func(ctx context.Context, namespace string, c *client)) {
	t.Helper()
	fake, genuine := clients(t)
	name := namespace + "-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	for _, c := range []*client{genuine, fake} {
		ask(t.Context(), name, c)
	}
	if diff := cmp.Diff(genuine.answers, fake.answers); diff != "" {
		t.Errorf("the API server answers otherwise (-want +got):\n%s", diff)
	}
	if len(genuine.answers) == 0 {
		t.Error("nothing was asked")
	}
}

func object(apiVersion, kind, name string, rest map[string]any) *unstructured.Unstructured {
	content := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
		"name": name, "labels": map[string]any{"krake.dev/owned-by": "0123456789abcdef"}, "annotations": map[string]any{"krake.dev/owner": "a/b"},
	}}
	maps.Copy(content, rest)
	return &unstructured.Unstructured{Object: content}
}

func configMap(name string) *unstructured.Unstructured {
	return object("v1", "ConfigMap", name, map[string]any{"data": map[string]any{"key": "value"}})
}

// An agent asks what is served before it does anything.
func TestDiscovery(t *testing.T) {
	served := func(config *rest.Config) map[string]metav1.APIResource {
		_, lists, err := newClient(t, config).discovery.ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]metav1.APIResource{}
		for _, list := range lists {
			for _, resource := range list.APIResources {
				found[list.GroupVersion+" "+resource.Name] = metav1.APIResource{
					Name: resource.Name, SingularName: resource.SingularName, Kind: resource.Kind, Namespaced: resource.Namespaced,
				}
			}
		}
		return found
	}
	fake, genuine := served(target.New().Config()), served(apiServer)
	if len(fake) != 7 {
		t.Errorf("%d resources are served, want 7", len(fake))
	}
	for name, resource := range fake {
		if diff := cmp.Diff(genuine[name], resource); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCreateAndRead(t *testing.T) {
	compare(t, func(ctx context.Context, namespace string, c *client) {
		create := func(what string, in schema.GroupVersionResource, namespace string, o *unstructured.Unstructured) {
			made, err := c.Resource(in).Namespace(namespace).Create(ctx, o, metav1.CreateOptions{FieldManager: "krake-agent"})
			c.answer(what, made, err)
		}
		create("a new one", configMaps, namespace, configMap("a"))
		create("one that exists", configMaps, namespace, configMap("a"))
		create("one in a namespace that does not exist", configMaps, "krake-nowhere", configMap("a"))
		create("a Service gets its defaults", services, namespace, object("v1", "Service", "a", map[string]any{
			"spec": map[string]any{"selector": map[string]any{"app": "a"}, "ports": []any{map[string]any{"port": int64(80)}}},
		}))
		read, err := c.Resource(configMaps).Namespace(namespace).Get(ctx, "a", metav1.GetOptions{})
		c.answer("read", read, err)
		read, err = c.Resource(configMaps).Namespace(namespace).Get(ctx, "b", metav1.GetOptions{})
		c.answer("read what does not exist", read, err)
		read, err = c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "widgets"}).Namespace(namespace).Get(ctx, "a", metav1.GetOptions{})
		c.answer("read what is not served", read, err)
		create("another one", configMaps, namespace, configMap("b"))
		create("one that belongs to nobody", configMaps, namespace, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"},
		}})
		for _, options := range []metav1.ListOptions{
			{LabelSelector: "krake.dev/owned-by"}, {LabelSelector: "krake.dev/owned-by=0123456789abcdef", Limit: 500},
			{LabelSelector: "another"}, {FieldSelector: "metadata.name=b", LabelSelector: "krake.dev/owned-by"},
		} {
			listed, err := c.Resource(configMaps).Namespace(namespace).List(ctx, options)
			c.answer("list "+options.LabelSelector+options.FieldSelector, listed, err)
			versions, err := c.metadata.Resource(configMaps).Namespace(namespace).List(ctx, options)
			c.answer("list metadata "+options.LabelSelector+options.FieldSelector, versions, err)
		}
	})
}

// Each repair is a patch of the observed fields that differ, guarded by the
// version that it was made for.
func TestPatch(t *testing.T) {
	compare(t, func(ctx context.Context, namespace string, c *client) {
		in := c.Resource(configMaps).Namespace(namespace)
		made, err := in.Create(ctx, configMap("a"), metav1.CreateOptions{})
		c.answer("create", made, err)
		patch := func(what, name, patch string) {
			after, err := in.Patch(ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "krake-agent"})
			c.answer(what, after, err)
		}
		const guard, stale = `{"op":"replace","path":"/metadata/resourceVersion","value":%q}`, `{"op":"replace","path":"/metadata/resourceVersion","value":"1"}`
		guarded := fmt.Sprintf(guard, made.GetResourceVersion())
		patch("a repair", "a", `[`+guarded+`,{"op":"replace","path":"/data/key","value":"another"}]`)
		patch("a repair of what has changed since", "a", `[`+guarded+`,{"op":"replace","path":"/data/key","value":"third"}]`)
		patch("a repair of what was never", "a", `[`+stale+`,{"op":"add","path":"/data/new","value":"fourth"}]`)
		patch("nothing changes", "a", `[{"op":"replace","path":"/data/key","value":"another"}]`)
		patch("a path that is not there", "a", `[{"op":"replace","path":"/data/missing","value":""}]`)
		patch("a path that is not there, of what has changed since", "a", `[`+guarded+`,{"op":"remove","path":"/data/missing"}]`)
		patch("what is no patch", "a", `{"op":"remove"}`)
		patch("an object that is not there", "b", `[{"op":"add","path":"/data/key","value":""}]`)
		patch("an element that is not there", "a", `[{"op":"remove","path":"/metadata/finalizers/0"}]`)
		patch("the marks", "a", `[{"op":"remove","path":"/metadata/labels"},{"op":"remove","path":"/metadata/annotations"}]`)
	})
}

func TestDelete(t *testing.T) {
	compare(t, func(ctx context.Context, namespace string, c *client) {
		in := c.Resource(configMaps).Namespace(namespace)
		made, err := in.Create(ctx, configMap("a"), metav1.CreateOptions{})
		c.answer("create", made, err)
		uid, version, another, policy := made.GetUID(), made.GetResourceVersion(), types.UID("another"), metav1.DeletePropagationBackground
		old := "1"
		for _, deletion := range []struct {
			what     string
			expected metav1.Preconditions
		}{
			{"another one of that name", metav1.Preconditions{UID: &another, ResourceVersion: &version}},
			{"one that has changed since", metav1.Preconditions{UID: &uid, ResourceVersion: &old}},
			{"the one", metav1.Preconditions{UID: &uid, ResourceVersion: &version}},
			{"one that is gone", metav1.Preconditions{UID: &uid, ResourceVersion: &version}},
		} {
			err := in.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &deletion.expected, PropagationPolicy: &policy})
			c.answer(deletion.what, &metav1.Status{}, err)
			found, err := in.Get(ctx, "a", metav1.GetOptions{})
			c.answer("is there", found, err)
		}
	})
}

// Leases are updated as whole objects.
func TestUpdate(t *testing.T) {
	compare(t, func(ctx context.Context, namespace string, c *client) {
		in := c.Resource(leases).Namespace(namespace)
		made, err := in.Create(ctx, object("coordination.k8s.io/v1", "Lease", "a", map[string]any{"spec": map[string]any{
			"holderIdentity": "me", "leaseDurationSeconds": int64(15), "renewTime": "2026-01-02T15:04:05.000006Z",
		}}), metav1.CreateOptions{})
		c.answer("create", made, err)
		update := func(what string, change func(*unstructured.Unstructured)) {
			changed := made.DeepCopy()
			change(changed)
			after, err := in.Update(ctx, changed, metav1.UpdateOptions{})
			c.answer(what, after, err)
		}
		hold := func(lease *unstructured.Unstructured, who string) {
			_ = unstructured.SetNestedField(lease.Object, who, "spec", "holderIdentity") // the spec is an object
		}
		update("nothing changes", func(*unstructured.Unstructured) {})
		update("another holder", func(lease *unstructured.Unstructured) { hold(lease, "you") })
		update("an update of what has changed since", func(lease *unstructured.Unstructured) { hold(lease, "they") })
		update("whatever it is now", func(lease *unstructured.Unstructured) {
			lease.SetResourceVersion("")
			hold(lease, "everybody")
		})
		update("another UID", func(lease *unstructured.Unstructured) {
			lease.SetResourceVersion("")
			lease.SetUID("another")
		})
	})
}

// The agent's Lease is written by a client with types, which speaks protobuf.
func TestLease(t *testing.T) {
	compare(t, func(ctx context.Context, namespace string, c *client) {
		in := c.leases.Leases(namespace)
		me, you := "me", "you"
		made, err := in.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &me, RenewTime: &metav1.MicroTime{Time: time.UnixMicro(1_800_000_000_000_006)}},
		}, metav1.CreateOptions{})
		c.answer("create", made, err)
		taken := made.DeepCopy()
		taken.Spec.HolderIdentity = &you
		after, err := in.Update(ctx, taken, metav1.UpdateOptions{})
		c.answer("take", after, err)
		after, err = in.Update(ctx, made, metav1.UpdateOptions{})
		c.answer("renew what was taken", after, err)
		after, err = in.Get(ctx, "a", metav1.GetOptions{})
		c.answer("read", after, err)
		after, err = in.Get(ctx, "b", metav1.GetOptions{})
		c.answer("read what is not there", after, err)
	})
}

// An Event that recurs is counted by a strategic merge patch.
func TestEvent(t *testing.T) {
	compare(t, func(ctx context.Context, namespace string, c *client) {
		in := c.Resource(eventsOf).Namespace(namespace)
		made, err := in.Create(ctx, object("events.k8s.io/v1", "Event", "a", map[string]any{
			"eventTime": "2026-01-02T15:04:05.000006Z", "reportingController": "krake-agent", "reportingInstance": "a", "action": "Reconcile",
			"reason": "Reverted", "type": "Warning", "note": "a note",
			"regarding": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "a"},
		}), metav1.CreateOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		patched, err := in.Patch(ctx, made.GetName(), types.StrategicMergePatchType,
			[]byte(`{"series":{"count":2,"lastObservedTime":"2026-01-02T15:05:05.000006Z"}}`), metav1.PatchOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		series, _, err := unstructured.NestedMap(patched.Object, "series")
		c.answer("the series", &unstructured.Unstructured{Object: map[string]any{"kind": "Series", "series": series}}, err)
	})
}

// An informer begins with a list, or, by a newer client, with a watch that tells
// first what there is.
func TestWatch(t *testing.T) {
	compare(t, func(ctx context.Context, namespace string, c *client) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		in := c.Resource(configMaps).Namespace(namespace)
		made, err := in.Create(ctx, configMap("a"), metav1.CreateOptions{})
		c.answer("create", made, err)
		listed, err := in.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		selected := metav1.ListOptions{LabelSelector: "krake.dev/owned-by", AllowWatchBookmarks: true}
		later, first := selected, selected
		later.ResourceVersion = listed.GetResourceVersion()
		initially := true
		first.SendInitialEvents, first.ResourceVersionMatch = &initially, metav1.ResourceVersionMatchNotOlderThan

		objects, err := in.Watch(ctx, later)
		c.watched("from a list on", objects, err, 0)
		all, err := in.Watch(ctx, first)
		c.watched("from the beginning", all, err, 2)
		versions, err := c.metadata.Resource(configMaps).Namespace(namespace).Watch(ctx, first)
		c.watched("metadata from the beginning", versions, err, 2)

		c.change(ctx, t, in)
		c.watched("from a list on", objects, nil, 5)
		c.watched("from the beginning", all, nil, 5)
		c.watched("metadata from the beginning", versions, nil, 5)
	})
}

// change does what those who watch have to hear of.
func (c *client) change(ctx context.Context, t *testing.T, in dynamic.ResourceInterface) {
	patch := func(patch string) error {
		_, err := in.Patch(ctx, "a", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	steps := []error{
		patch(`[{"op":"replace","path":"/data/key","value":"another"}]`),                               // changes
		patch(`[{"op":"replace","path":"/data/key","value":"another"}]`),                               // does not
		patch(`[{"op":"remove","path":"/metadata/labels"}]`),                                           // is selected no more
		patch(`[{"op":"replace","path":"/data/key","value":"third"}]`),                                 // changes, unseen
		patch(`[{"op":"add","path":"/metadata/labels","value":{"krake.dev/owned-by":"0"}}]`),           // is selected again
		in.Delete(ctx, "a", metav1.DeleteOptions{}),                                                    // goes
		ignore(in.Create(ctx, configMap("b"), metav1.CreateOptions{})),                                 // another comes
		ignore(in.Create(ctx, &unstructured.Unstructured{Object: unselected}, metav1.CreateOptions{})), // one that nobody selects
	}
	if err := errors.Join(steps...); err != nil {
		t.Error(err)
	}
}

var unselected = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}}

func ignore(_ *unstructured.Unstructured, err error) error { return err }

// watched writes down so many events. Bookmarks are left out, but the one that
// ends what there was at first.
func (c *client) watched(what string, w watch.Interface, err error, events int) {
	if err != nil {
		c.answer(what, nil, err)
		return
	}
	for events > 0 {
		event, open := <-w.ResultChan()
		if !open {
			c.answers = append(c.answers, what+": ended")
			return
		}
		if event.Type == watch.Bookmark {
			if !isEndOfBeginning(event.Object) {
				continue
			}
			c.answers = append(c.answers, what+": all are told, in "+event.Object.GetObjectKind().GroupVersionKind().Kind)
		} else {
			c.answer(what+": "+string(event.Type), event.Object, nil)
		}
		events--
	}
}

func isEndOfBeginning(object runtime.Object) bool {
	accessor, ok := object.(metav1.Object)
	return ok && accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// A watch whose version is older than the events that are kept begins anew.
func TestWatchTooLate(t *testing.T) {
	server := target.New()
	c := newClient(t, server.Config())
	in := c.Resource(configMaps).Namespace("default")
	made, err := in.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if err := server.Change("configmaps", "default", "a", func(a map[string]any) { a["data"] = map[string]any{"key": fmt.Sprint(i)} }); err != nil {
			t.Fatal(err)
		}
	}
	w, err := in.Watch(t.Context(), metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	event := <-w.ResultChan()
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("%s %v, want that the version is expired", event.Type, err)
	}
}

// A watch ends when its time is over, and when nobody listens any more.
func TestWatchEnds(t *testing.T) {
	server := target.New()
	in := newClient(t, server.Config()).Resource(configMaps)
	second := int64(1)
	w, err := in.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1", TimeoutSeconds: &second})
	if err != nil {
		t.Fatal(err)
	}
	if event, open := <-w.ResultChan(); open {
		t.Errorf("there was an event: %v", event)
	}
	w, err = in.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	for range w.ResultChan() { // until it is closed
	}
}

// What the simulation itself does to a cluster.
func TestChangeAndAwait(t *testing.T) {
	server := target.New()
	in := newClient(t, server.Config()).Resource(configMaps).Namespace("default")
	if _, err := in.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	set := func(value string) error {
		return server.Change("configmaps", "default", "a", func(a map[string]any) { a["data"] = map[string]any{"key": value} })
	}
	is := func(value string) func(map[string]any) bool {
		return func(a map[string]any) bool { return cmp.Equal(a["data"], map[string]any{"key": value}) }
	}
	done := make(chan error, 1)
	go func() { done <- server.Await(t.Context(), "configmaps", "default", "a", is("second")) }()
	for _, value := range []string{"first", "second"} {
		if err := set(value); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := server.Await(ctx, "configmaps", "default", "a", is("third")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that it did not come", err)
	}
	if err := server.Change("configmaps", "default", "b", func(map[string]any) {}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that there is none", err)
	}
	if got := server.Requests(); !cmp.Equal(got, map[string]int{"create configmaps": 1}) || server.Objects("configmaps") != 1 {
		t.Errorf("%v, and %d objects", got, server.Objects("configmaps"))
	}
	if server.Bytes() < 100 {
		t.Errorf("%d bytes", server.Bytes())
	}
}

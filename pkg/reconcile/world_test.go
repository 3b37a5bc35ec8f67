package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/apply"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

var (
	appName = types.NamespacedName{Namespace: "demo", Name: "app"}
	noon    = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

// world is the three things that the loop talks to: one Application, the objects
// of its cluster, and observers that see all of them at once. It writes down
// what is asked of it; of a write to the Application, what that changes.
type world struct {
	*reconcile.Reconciler

	cm      *corev1.ConfigMap // nil: there is none
	objects map[string]map[string]any
	version int

	// answer changes what the API server makes of a created or patched object.
	answer func(live map[string]any)
	// failures are the answers to calls, by the text of the call, as "Create ConfigMap a".
	failures map[string]error
	// Of objects, by their names as "ConfigMap a": that the observers have not
	// looked at them, that they do not see them, that they saw them disappear, that
	// they disappear once they were seen, that a finalizer keeps them.
	stale, unseen, gone, vanishing, finalized map[string]bool

	calls   []string
	reports []string
	// What the observers were told last.
	observed, started []observer.Target
	seen              []string
}

// newWorld has an Application with this spec, as admission leaves it.
func newWorld(t *testing.T, manifestText, schemaText string) *world {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: appName.Namespace, Name: appName.Name, UID: "app-uid", ResourceVersion: "1",
			Annotations: map[string]string{application.FormatAnnotation: application.Format},
		},
		Data: map[string]string{application.ManifestKey: manifestText, application.ObserverSchemaKey: schemaText},
	}
	if prepared := mutate.PrepareForCreate(cm); len(prepared.Refusals) > 0 {
		t.Fatal(prepared.Refusals)
	}
	w := &world{
		cm: cm, objects: map[string]map[string]any{}, version: 1, answer: func(map[string]any) {},
		failures: map[string]error{}, stale: map[string]bool{}, unseen: map[string]bool{}, gone: map[string]bool{},
		vanishing: map[string]bool{}, finalized: map[string]bool{},
	}
	w.Reconciler = &reconcile.Reconciler{
		ClusterName: application.LocalCluster, Applications: applications{w}, Cluster: cluster{w}, Observers: observers{w},
		Mapper: mapper(), FieldManager: "ourselves", Now: func() time.Time { return noon },
		Report: func(_ *application.Application, outcome reconcile.Outcome) {
			w.reports = append(w.reports, outcome.String())
		},
	}
	return w
}

func mapper() meta.RESTMapper {
	known := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []gvr.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1beta2", Kind: "Deployment"},
		{Group: "example.com", Version: "v1", Kind: "Song"},
	} {
		known.Add(kind, meta.RESTScopeNamespace)
	}
	known.Add(gvr.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	return known
}

// running gives a world that has come to rest, with what was written down forgotten.
func running(t *testing.T, manifestText, schemaText string) *world {
	t.Helper()
	w := newWorld(t, manifestText, schemaText)
	w.mustReconcile(t)
	w.forget()
	return w
}

func (w *world) forget() { w.calls, w.reports = nil, nil }

func (w *world) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return w.Reconcile(t.Context(), ctrl.Request{NamespacedName: appName})
}

func (w *world) mustReconcile(t *testing.T) {
	t.Helper()
	if result, err := w.reconcile(t); err != nil || result != (ctrl.Result{}) {
		t.Fatalf("result %+v, error %v", result, err)
	}
}

func (w *world) checkCalls(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// checkQuiet: the next pass finds nothing to do and writes nothing.
func (w *world) checkQuiet(t *testing.T) {
	t.Helper()
	w.forget()
	w.mustReconcile(t)
	w.checkCalls(t, "Observe", "Start")
}

func (w *world) checkReports(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.reports); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// app is what the ConfigMap says now.
func (w *world) app(t *testing.T) *application.Application {
	t.Helper()
	app, err := application.Read(w.cm)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// checkReady compares the condition Ready.
func (w *world) checkReady(t *testing.T, state application.State, reason, message string) {
	t.Helper()
	type ready struct {
		State           application.State
		Reason, Message string
	}
	app := w.app(t)
	got := ready{State: app.Status.State}
	if condition := meta.FindStatusCondition(app.Status.Conditions, application.ReadyCondition); condition != nil {
		got.Reason, got.Message = condition.Reason, condition.Message
	}
	if diff := cmp.Diff(ready{state, reason, message}, got); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
}

func (w *world) inventory(t *testing.T) []string {
	t.Helper()
	var held []string
	for _, id := range w.app(t).Inventory {
		held = append(held, id.Kind+" "+id.Name)
	}
	return held
}

// change is what somebody else does to an object.
func (w *world) change(t *testing.T, name string, change func(live *unstructured.Unstructured)) {
	t.Helper()
	live, ok := w.objects[name]
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	change(&unstructured.Unstructured{Object: live})
	w.bump(live)
}

// respec changes the spec, as a user does.
func (w *world) respec(manifestText, schemaText string) {
	w.cm.Data[application.ManifestKey], w.cm.Data[application.ObserverSchemaKey] = manifestText, schemaText
	w.cm.ResourceVersion = w.next()
}

func (w *world) call(words ...string) error {
	text := strings.Join(words, " ")
	w.calls = append(w.calls, text)
	return w.failures[text]
}

func (w *world) next() string {
	w.version++
	return strconv.Itoa(w.version)
}

func (w *world) bump(live map[string]any) {
	(&unstructured.Unstructured{Object: live}).SetResourceVersion(w.next())
}

// label is how an object is called here.
func label(id manifest.ID) string { return id.Kind + " " + id.Name }

type applications struct{ *world }

func (a applications) Get(context.Context, types.NamespacedName) (*application.Application, error) {
	if a.cm == nil || !application.IsApplication(a.cm) {
		return nil, nil
	}
	return application.Read(a.cm)
}

func (a applications) Update(_ context.Context, app *application.Application) error {
	updated := a.cm.DeepCopy()
	if err := app.Record(updated); err != nil {
		return err
	}
	changes := changed(a.cm, updated)
	if len(changes) == 0 {
		return nil
	}
	if err := a.call(slices.Insert(changes, 0, "Write")...); err != nil {
		return err
	}
	updated.ResourceVersion = a.next()
	a.cm, app.Version = updated, updated.ResourceVersion
	return nil
}

// changed names what differs between two versions of the Application.
func changed(before, after *corev1.ConfigMap) []string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(merge(before.Data, after.Data))) {
		if before.Data[key] != after.Data[key] {
			names = append(names, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(merge(before.Labels, after.Labels))) {
		if before.Labels[key] != after.Labels[key] {
			names = append(names, key)
		}
	}
	if !slices.Equal(before.Finalizers, after.Finalizers) {
		names = append(names, "finalizers")
	}
	return names
}

func merge(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

type cluster struct{ *world }

func (c cluster) Create(_ context.Context, ref manifest.Ref, object map[string]any) (map[string]any, error) {
	name := label(ref.ID)
	if err := c.call("Create", name); err != nil {
		return nil, fmt.Errorf("create %s: %w", ref, err)
	}
	if c.objects[name] != nil {
		return nil, fmt.Errorf("create %s: %w", ref, apierrors.NewAlreadyExists(gvr.GroupResource{Resource: ref.Resource.Resource}, ref.Name))
	}
	live := runtime.DeepCopyJSON(object)
	(&unstructured.Unstructured{Object: live}).SetUID(types.UID("uid of " + name))
	c.answer(live)
	c.bump(live)
	c.objects[name] = live
	return runtime.DeepCopyJSON(live), nil
}

func (c cluster) Patch(_ context.Context, ref manifest.Ref, live map[string]any, repair apply.Repair) (map[string]any, error) {
	name := label(ref.ID)
	stored := c.objects[name]
	if stored == nil {
		return nil, fmt.Errorf("patch %s: %w", ref, apierrors.NewNotFound(gvr.GroupResource{Resource: ref.Resource.Resource}, ref.Name))
	}
	if live == nil {
		_ = c.call("Read", name) // it cannot fail
		live = runtime.DeepCopyJSON(stored)
	}
	patch, err := repair(live)
	if err != nil || len(patch) == 0 {
		return live, err
	}
	words := []string{"Patch", name}
	for _, operation := range patch {
		words = append(words, operation.Op, operation.Path)
	}
	if err := c.call(words...); err != nil {
		return nil, fmt.Errorf("patch %s: %w", ref, err)
	}
	perform(stored, patch)
	c.answer(stored)
	c.bump(stored)
	return runtime.DeepCopyJSON(stored), nil
}

// perform does what these tests need of a JSON Patch: it sets fields of objects.
func perform(live map[string]any, patch schema.Patch) {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, operation := range patch {
		var path []string
		for step := range strings.SplitSeq(operation.Path[1:], "/") {
			path = append(path, unescape.Replace(step))
		}
		if err := unstructured.SetNestedField(live, runtime.DeepCopyJSONValue(operation.Value), path...); err != nil {
			panic(err) // a test that needs more
		}
	}
}

func (c cluster) Delete(_ context.Context, ref manifest.Ref, proof apply.Proof) (bool, error) {
	name := label(ref.ID)
	live := c.objects[name]
	if live == nil {
		return true, nil
	}
	if err := proof(live); err != nil {
		return false, err
	}
	if err := c.call("Delete", name); err != nil {
		return false, fmt.Errorf("delete %s: %w", ref, err)
	}
	if c.finalized[name] {
		return false, nil
	}
	delete(c.objects, name)
	return true, nil
}

type observers struct{ *world }

func (o observers) Observe(_ observer.Owner, targets []observer.Target) ([]observer.Observation, error) {
	if err := o.call("Observe"); err != nil {
		return nil, err
	}
	o.observed = targets
	current := make([]observer.Observation, 0, len(targets))
	for _, target := range targets {
		current = append(current, o.look(target))
	}
	return current, nil
}

func (o observers) look(target observer.Target) observer.Observation {
	name, at := label(target.ID), noon.Add(-12*time.Millisecond)
	live := o.objects[name]
	switch {
	case live == nil && o.gone[name]:
		return observer.Observation{Seen: at}
	case live == nil || o.unseen[name]:
		return observer.Observation{}
	}
	object := unstructured.Unstructured{Object: live}
	seen := observer.Observation{UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(), Seen: at}
	switch {
	case o.vanishing[name]:
		delete(o.objects, name)
		seen.Stale = true
	case o.stale[name]:
		seen.Stale = true
	default:
		seen.Projection = target.Schema.Project(target.Desired, live)
		if len(target.Marked.Compare(target.Desired, live)) > 0 {
			seen.Live = runtime.DeepCopyJSON(live)
		}
	}
	return seen
}

func (o observers) Start(_ observer.Owner, targets []observer.Target, seen []map[string]any) {
	o.started, o.seen = targets, nil
	for _, live := range seen {
		object := unstructured.Unstructured{Object: live}
		o.seen = append(o.seen, fmt.Sprintf("%s %s in version %s", object.GetKind(), object.GetName(), object.GetResourceVersion()))
	}
	_ = o.call("Start")
}

func (o observers) Stop(observer.Owner) { _ = o.call("Stop") }

package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/internal/apply"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

var (
	appName = types.NamespacedName{Namespace: "demo", Name: "app"}
	noon    = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

	// errSilent is the error of a request that no API server answers.
	errSilent = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
)

// world simulates what the loop calls: one Application, the objects of its cluster, and
// observers that see all objects at once. It records all calls, and for a write to the
// Application its changes.
type world struct {
	*reconcile.Reconciler

	cm      *corev1.ConfigMap // nil: it does not exist
	objects map[string]map[string]any
	version int
	// now is the current time, which advances by step before each pass.
	now  time.Time
	step time.Duration
	// others are other Applications. Of those in named, by their names in the same namespace, the loop reads the content.
	others []types.NamespacedName
	named  map[string]*application.Application

	// answer changes a created or patched object as the API server does.
	answer func(live map[string]any)
	// admit validates a change of an object.
	admit func(before, after map[string]any) error
	// unknown are errors for objects that observers cannot watch, by the object's name.
	unknown map[string]error
	// hubFails is the error of all writes to the Application.
	hubFails error
	// failures are the errors of calls, by the text of the call, such as "Create ConfigMap a".
	failures map[string]error
	// These maps hold objects by labels such as "ConfigMap a". The observers have not read the
	// stale ones, do not see the unseen ones, and saw the gone ones disappear. The vanishing
	// ones disappear after they were observed.
	stale, unseen, gone, vanishing map[string]bool
	// last are the summaries of the gone ones.
	last map[string]any
	// desired are the desired objects of targets, by their revisions.
	desired map[string]map[string]any

	calls   []string
	reports []string
	// unsigned reports that the Application has no valid signature.
	unsigned bool
	// redefinitions is how often a definition of a kind has changed.
	redefinitions int
	// looked counts the reads of an object before its deletion.
	looked map[string]int
	// The targets of the last call of Observe and of Start.
	observed, started []observer.Target
	seen              []string
}

// newWorld returns a world whose Application has this spec, after admission.
func newWorld(t testing.TB, manifestText, schemaText string) *world {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: appName.Namespace, Name: appName.Name, UID: "app-uid", ResourceVersion: "1",
			Annotations: map[string]string{application.FormatAnnotation: application.Format},
		},
		Data: map[string]string{application.ManifestKey: manifestText, application.ObserverSchemaKey: schemaText},
	}
	check.Must(t, mutate.PrepareForCreate(t.Context().Err, cm).Refusals.ToAggregate())
	w := &world{
		cm: cm, objects: map[string]map[string]any{}, version: 1, now: noon, step: 2 * time.Second,
		answer: func(map[string]any) {}, admit: func(_, _ map[string]any) error { return nil }, unknown: map[string]error{},
		looked: map[string]int{}, failures: map[string]error{}, stale: map[string]bool{}, unseen: map[string]bool{}, gone: map[string]bool{},
		vanishing: map[string]bool{}, last: map[string]any{}, desired: map[string]map[string]any{},
	}
	w.restart()
	return w
}

// restart starts a new agent without memory.
func (w *world) restart() {
	scope, limit := mutate.NamespaceScope, 4*time.Hour
	former := w.Reconciler
	if former != nil {
		scope, limit = w.Scope, w.MaxHold
	}
	w.Reconciler = &reconcile.Reconciler{
		ClusterName: application.LocalCluster, Scope: scope, Applications: applications{w}, Clusters: clusters{w}, Observers: observers{w},
		Kinds: kinds{mapper(), w}, FieldManager: "ourselves", MaxHold: limit, Now: func() time.Time { return w.now },
		Report: func(_ *application.Application, outcome status.Outcome) {
			w.reports = append(w.reports, outcome.String())
		},
	}
	if former != nil {
		w.Secrets, w.Shutdowns, w.ShutdownDefaults = former.Secrets, former.Shutdowns, former.ShutdownDefaults
		w.Sources, w.RequireAccount = former.Sources, former.RequireAccount
	}
}

type kinds struct {
	meta.RESTMapper
	*world
}

func (k kinds) Redefinitions(string) int { return k.redefinitions }

func (kinds) Forget(types.NamespacedName) {}

func (kinds) Types(types.NamespacedName, manifest.ID) *apitypes.Types { return nil }

func (k kinds) Locate(_ types.NamespacedName, id manifest.ID) (mutate.Object, error) {
	mapping, err := k.RESTMapping(id.GroupVersionKind().GroupKind(), id.GroupVersionKind().Version)
	for _, err := range []error{k.failures["Locate "+id.Kind], k.failures["Locate"], err} {
		if err != nil {
			return mutate.Object{}, err
		}
	}
	return mutate.ObjectAt(id, mapping), nil
}

// hide makes the target serve no objects of a kind.
func (w *world) hide(kind string) {
	w.failures["Locate "+kind] = &meta.NoKindMatchError{GroupKind: gvr.GroupKind{Kind: kind}}
}

func mapper() meta.RESTMapper {
	known := meta.NewDefaultRESTMapper([]gvr.GroupVersion{{Group: "apps", Version: "v1"}})
	for _, kind := range []gvr.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "Secret"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1beta2", Kind: "Deployment"},
		{Group: "example.com", Version: "v1", Kind: "Song"}, {Group: "batch", Version: "v1", Kind: "Job"},
	} {
		known.Add(kind, meta.RESTScopeNamespace)
	}
	for _, kind := range []gvr.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, {Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	} {
		known.Add(kind, meta.RESTScopeRoot)
	}
	return known
}

// running returns a world that is reconciled, and clears the recorded calls.
func running(t testing.TB, manifestText, schemaText string) *world {
	t.Helper()
	w := newWorld(t, manifestText, schemaText)
	w.mustReconcile(t)
	w.forget()
	return w
}

func (w *world) forget() { w.calls, w.reports = nil, nil }

func (w *world) reconcile(t testing.TB) (ctrl.Result, error) {
	t.Helper()
	w.now = w.now.Add(w.step)
	return w.Reconcile(t.Context(), ctrl.Request{NamespacedName: appName})
}

func (w *world) mustReconcile(t testing.TB) {
	t.Helper()
	if result, err := w.reconcile(t); err != nil || result != (ctrl.Result{}) {
		t.Fatalf("result %+v, error %v", result, err)
	}
}

func (w *world) checkCalls(t *testing.T, want ...string) {
	t.Helper()
	check.Equal(t, "calls", want, w.calls)
}

// checkCallsOfPass makes a pass after which no other is due, and compares all of its calls.
func (w *world) checkCallsOfPass(t *testing.T, want ...string) {
	t.Helper()
	w.mustRest(t)
	w.checkCalls(t, want...)
}

// mustRest clears the recorded calls and runs mustReconcile.
func (w *world) mustRest(t testing.TB) {
	t.Helper()
	w.forget()
	w.mustReconcile(t)
}

// mustFail makes a pass that ends with an error.
func (w *world) mustFail(t *testing.T) {
	t.Helper()
	if _, err := w.reconcile(t); err == nil {
		t.Error("no error")
	}
}

// checkQuiet checks that the next pass finds no differences and writes nothing.
func (w *world) checkQuiet(t *testing.T) {
	t.Helper()
	w.checkCallsOfPass(t, "Observe", "Start")
}

func (w *world) checkReports(t *testing.T, want ...string) {
	t.Helper()
	check.Equal(t, "reports", want, w.reports)
}

// checkLacks checks that a part is in none of the texts.
func checkLacks(t *testing.T, part string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(text, part) {
			t.Errorf("%q is in %q", part, text)
		}
	}
}

// checkRange checks that a number is neither below the least nor above the most.
func checkRange(t *testing.T, what string, least, most, got int) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %d, want %d to %d", what, got, least, most)
	}
}

// app decodes the ConfigMap.
func (w *world) app(t *testing.T) *application.Application {
	t.Helper()
	app, err := application.Read(w.cm)
	check.Must(t, err)
	return app
}

// ready is the message of the condition Ready when the Application is healthy.
const ready = "all objects match the Application, and are healthy"

func (w *world) checkState(t *testing.T, want application.State) {
	t.Helper()
	check.Equal(t, "state", want, w.app(t).Status.State)
}

// checkExists compares whether an object is on the target.
func (w *world) checkExists(t *testing.T, name string, want bool) {
	t.Helper()
	check.Equal(t, name+" exists", want, w.objects[name] != nil)
}

// documents returns what the Application has learned and observed, and the cluster that these documents are of.
func (w *world) documents(t *testing.T) []string {
	t.Helper()
	return []string{w.cm.Data[application.LearnedKey], w.cm.Data[application.LastObservedKey], w.app(t).Status.ClusterName()}
}

// checkObjects compares the number of objects on the target.
func (w *world) checkObjects(t *testing.T, want int) {
	t.Helper()
	if len(w.objects) != want {
		t.Errorf("%d objects, want %d: %v", len(w.objects), want, w.objects)
	}
}

func (w *world) checkNothingLearned(t *testing.T) {
	t.Helper()
	check.Empty(t, "learned", w.app(t).Learned)
}

// checkReady compares the state and the condition Ready.
func (w *world) checkReady(t *testing.T, state application.State, reason, message string) {
	t.Helper()
	w.checkState(t, state)
	w.checkCondition(t, application.ReadyCondition, reason, message)
}

// checkReconciled compares the state and the conditions Ready and Reconciled, which have the
// same reason and message.
func (w *world) checkReconciled(t *testing.T, state application.State, reason, message string) {
	t.Helper()
	w.checkReady(t, state, reason, message)
	w.checkCondition(t, application.ReconciledCondition, reason, message)
}

func (w *world) checkCondition(t *testing.T, name, reason, message string) {
	t.Helper()
	type said struct{ Reason, Message string }
	got := said{}
	if condition := meta.FindStatusCondition(w.app(t).Status.Conditions, name); condition != nil {
		got = said{condition.Reason, condition.Message}
	}
	check.Equal(t, "condition "+name, said{reason, message}, got)
}

// checkReason compares the reason of a condition, whatever its message.
func (w *world) checkReason(t *testing.T, name, reason string) {
	t.Helper()
	condition := meta.FindStatusCondition(w.app(t).Status.Conditions, name)
	if condition == nil || condition.Reason != reason {
		t.Errorf("condition %s is %+v, want the reason %s", name, condition, reason)
	}
}

// writes returns the calls that write, successful or not.
func (w *world) writes() []string { return w.callsOf("Create", "Patch", "Delete", "Write") }

// touches returns the calls that write to the target, successful or not.
func (w *world) touches() []string { return w.callsOf("Create", "Patch", "Delete") }

func (w *world) callsOf(verbs ...string) (calls []string) {
	for _, call := range w.calls {
		if verb, _, _ := strings.Cut(call, " "); slices.Contains(verbs, verb) {
			calls = append(calls, call)
		}
	}
	return calls
}

func (w *world) checkTouches(t *testing.T, want ...string) {
	t.Helper()
	check.Equal(t, "writes to the target", want, w.touches())
}

// checkPass makes a pass that does not fail, and compares what it writes to the target.
func (w *world) checkPass(t *testing.T, touches ...string) {
	t.Helper()
	w.mustPass(t)
	w.checkTouches(t, touches...)
}

// checkLastPass is checkPass, and no further pass is due.
func (w *world) checkLastPass(t *testing.T, touches ...string) {
	t.Helper()
	w.mustRest(t)
	w.checkTouches(t, touches...)
}

// pass reconciles, whatever the result, and clears the recorded calls first.
func (w *world) pass(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	w.forget()
	return w.reconcile(t)
}

// checkSilentRestart checks that a new agent writes nothing.
func (w *world) checkSilentRestart(t *testing.T) {
	t.Helper()
	w.restart()
	for range 2 {
		// A failed step fails once more. Only the absence of writes matters.
		if _, err := w.pass(t); err != nil {
			t.Logf("after a restart: %v", err)
		}
		check.Equal(t, "writes after a restart", []string(nil), w.writes())
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

// change changes an object as another client.
func (w *world) change(t testing.TB, name string, change func(live *unstructured.Unstructured)) {
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

func resourceVersion(live map[string]any) string {
	return (&unstructured.Unstructured{Object: live}).GetResourceVersion()
}

func (w *world) bump(live map[string]any) {
	(&unstructured.Unstructured{Object: live}).SetResourceVersion(w.next())
}

// label returns the name of an object in the recorded calls. Only the namespace other is part of it, because tests map the
// namespace of the Application.
func label(id manifest.ID) string {
	if id.Namespace == "other" {
		return id.Kind + " other/" + id.Name
	}
	return id.Kind + " " + id.Name
}

type applications struct{ *world }

func (a applications) Get(_ context.Context, name types.NamespacedName) (*application.Application, error) {
	if name != appName {
		if app := a.named[name.Name]; app != nil && name.Namespace == appName.Namespace {
			return app.Clone(), a.failures["Read "+name.Name]
		}
		if slices.Contains(a.others, name) {
			return &application.Application{NamespacedName: name}, nil
		}
		return nil, nil
	}
	if a.cm == nil || !application.IsApplication(a.cm) {
		return nil, nil
	}
	app, err := application.ReadFor(a.cm, a.ClusterName)
	if a.unsigned {
		return app, err
	}
	return admitted(app), err
}

// admitted returns the Application as one with a valid signature.
func admitted(app *application.Application) *application.Application {
	if app != nil {
		app.NotAdmitted = nil
	}
	return app
}

func (a applications) Delete(_ context.Context, app *application.Application) error {
	if err := errors.Join(a.call("Delete the Application"), a.hubFails); err != nil {
		return err
	}
	if a.cm.UID != app.UID {
		return nil
	}
	deleted := metav1.NewTime(a.now)
	a.cm.DeletionTimestamp = &deleted
	a.cm.ResourceVersion = a.next()
	return nil
}

func (a applications) Update(_ context.Context, app *application.Application) error {
	updated := a.cm.DeepCopy()
	if err := errors.Join(hear(app.Status.Conditions), app.Record(updated)); err != nil {
		return err
	}
	changes := changed(a.cm, updated)
	if len(changes) == 0 {
		app.Stored(a.cm)
		return nil
	}
	if err := errors.Join(a.call(slices.Insert(changes, 0, "Write")...), a.hubFails); err != nil {
		return err
	}
	if app.Version != a.cm.ResourceVersion {
		return apierrors.NewConflict(gvr.GroupResource{Resource: "configmaps"}, app.Name, fmt.Errorf("%s is not %s", app.Version, a.cm.ResourceVersion))
	}
	updated.ResourceVersion = a.next()
	a.cm = updated
	app.Stored(updated)
	return nil
}

// hear returns an error for a condition that the documentation, which is made of the tables of
// package status, does not list.
func hear(conditions []metav1.Condition) error {
	for _, set := range conditions {
		if !slices.ContainsFunc(status.Conditions(), func(listed status.Said) bool {
			return listed.Condition == set.Type && listed.Status == set.Status && listed.Reason == set.Reason
		}) {
			return fmt.Errorf("condition %s is %s for the reason %q: status.Conditions does not list it", set.Type, set.Status, set.Reason)
		}
	}
	return nil
}

// changed names the differences between two versions of the Application.
func changed(before, after *corev1.ConfigMap) []string {
	var names []string
	for _, texts := range [][2]map[string]string{{before.Data, after.Data}, {before.Labels, after.Labels}} {
		for _, key := range slices.Sorted(maps.Keys(merge(texts[0], texts[1]))) {
			if texts[0][key] != texts[1][key] {
				names = append(names, key)
			}
		}
	}
	if !slices.Equal(before.Finalizers, after.Finalizers) {
		names = append(names, "finalizers")
	}
	return names
}

func merge[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

type clusters struct{ *world }

func (c clusters) As(_ context.Context, account reconcile.Account) (reconcile.Cluster, error) {
	if account != (reconcile.Account{}) {
		if err := c.call("As", account.Namespace, account.Name); err != nil {
			return nil, err
		}
	}
	return cluster(c), nil
}

func (w *world) MayRead(_ context.Context, account reconcile.Account, ref manifest.Ref) error {
	return w.failures["MayRead "+account.Namespace+" "+account.Name+" "+label(ref.ID)]
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
	if err := c.admit(nil, object); err != nil {
		return nil, fmt.Errorf("create %s: %w", ref, err)
	}
	live := runtime.DeepCopyJSON(object)
	(&unstructured.Unstructured{Object: live}).SetUID(types.UID("uid of " + name))
	run(live)
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
	if err == nil && len(patch) > 0 && resourceVersion(live) != resourceVersion(stored) { // a conflict
		live = runtime.DeepCopyJSON(stored)
		patch, err = repair(live)
	}
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
	after := perform(live, patch)
	if err := c.admit(stored, after); err != nil {
		return nil, fmt.Errorf("patch %s: %w", ref, err)
	}
	c.answer(after)
	if !reflect.DeepEqual(stored, after) { // the API server does not store an unchanged object
		c.bump(after)
		c.objects[name] = after
	}
	return runtime.DeepCopyJSON(after), nil
}

// TryPatch validates a patch as a dry run.
func (c cluster) TryPatch(_ context.Context, ref manifest.Ref, patch schema.Patch) error {
	name := label(ref.ID)
	words := []string{"TryPatch", name}
	for _, operation := range patch {
		words = append(words, operation.Op, operation.Path)
	}
	if err := c.call(words...); err != nil {
		return err
	}
	return c.admit(c.objects[name], perform(c.objects[name], slices.Concat(schema.Patch{}, patch)))
}

// run updates a Deployment's status as its controller does, at once.
func run(live map[string]any) {
	if live["kind"] != "Deployment" || live["status"] != nil {
		return
	}
	spec, _ := live["spec"].(map[string]any)
	replicas, ok := spec["replicas"].(int64)
	if !ok {
		replicas = 1
	}
	live["status"] = map[string]any{
		"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
	}
}

// perform returns the object after the patch, decoded as by the API server.
func perform(live map[string]any, patch schema.Patch) map[string]any {
	operations := sure(jsonpatch.DecodePatch(sure(json.Marshal(patch))))
	patched := sure(operations.Apply(sure(json.Marshal(live))))
	var after map[string]any
	if err := utiljson.Unmarshal(patched, &after); err != nil {
		panic(err)
	}
	return after
}

// sure panics on an error that only a mistake in the test can cause.
func sure[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (c cluster) Delete(_ context.Context, ref manifest.Ref, proof apply.Proof) (map[string]any, error) {
	name := label(ref.ID)
	live := c.objects[name]
	if live == nil {
		return nil, nil
	}
	c.looked[name]++
	if err := proof(live); err != nil {
		return live, err
	}
	object := &unstructured.Unstructured{Object: live}
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) > 0 {
		return live, nil
	}
	if err := c.call("Delete", name); err != nil {
		return live, fmt.Errorf("delete %s: %w", ref, err)
	}
	if len(object.GetFinalizers()) > 0 {
		object.SetDeletionTimestamp(&metav1.Time{Time: c.now})
		c.bump(live)
		return live, nil
	}
	delete(c.objects, name)
	return nil, nil
}

// remove deletes an object as another client, and the observers see it.
func (w *world) remove(name string) {
	w.last[name], w.gone[name] = reconcile.Summarise(w.objects[name]), true
	delete(w.objects, name)
}

// finalize sets another client's finalizers on an object, or removes them.
func (w *world) finalize(t *testing.T, name string, finalizers ...string) {
	t.Helper()
	w.change(t, name, func(live *unstructured.Unstructured) {
		live.SetFinalizers(finalizers)
		if len(finalizers) == 0 && live.GetDeletionTimestamp() != nil {
			delete(w.objects, name)
		}
	})
}

type observers struct{ *world }

func (o observers) Observe(_ observer.Owner, targets []observer.Target) []observer.Observation {
	err := o.call("Observe")
	o.observed = targets
	current := make([]observer.Observation, 0, len(targets))
	for _, target := range targets {
		observation := o.look(target)
		observation.Err = err
		if unknown := o.unknown[label(target.ID)]; unknown != nil {
			observation.Err = unknown
		}
		current = append(current, observation)
	}
	return current
}

// Strays returns the objects that name the Application, as far as the observers see them.
func (o observers) Strays(owner observer.Owner) []observer.Stray {
	var strays []observer.Stray
	for _, name := range slices.Sorted(maps.Keys(o.objects)) {
		id, err := manifest.Identify(o.objects[name])
		if named, ok := application.OwnerOf(o.objects[name]); err != nil || !ok || named != owner || o.unseen[name] {
			continue
		}
		if !slices.ContainsFunc(o.observed, func(target observer.Target) bool { return label(target.ID) == name }) {
			strays = append(strays, observer.Stray{ID: id, Summary: reconcile.Summarise(o.objects[name])})
		}
	}
	return strays
}

func (o observers) look(target observer.Target) observer.Observation {
	name, at := label(target.ID), o.now.Add(-12*time.Millisecond)
	live := o.objects[name]
	switch {
	case live == nil && o.gone[name]:
		return observer.Observation{Seen: at, Summary: o.last[name]}
	case live == nil || o.unseen[name]:
		return observer.Observation{}
	}
	object := unstructured.Unstructured{Object: live}
	seen := observer.Observation{
		UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(), Seen: at, Summary: reconcile.Summarise(live),
	}
	switch {
	case o.vanishing[name]:
		delete(o.objects, name)
		seen.Stale = true
	case o.stale[name]:
		seen.Stale = true
	default:
		desired := o.desired[target.Revision]
		if desired == nil {
			desired = target.Desired.Fields()
			o.desired[target.Revision] = desired
		}
		seen.Projection = manifest.Pack(target.Schema.Project(desired, live))
		if len(target.Marked.Compare(desired, live)) > 0 {
			seen.Live = sure(json.Marshal(live))
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

// annotate sets an annotation of the Application to a time or a text.
func (w *world) annotate(name string, value any) {
	w.cm.Annotations[name] = annotation(value)
	w.cm.ResourceVersion = w.next()
}

func annotation(value any) string {
	if at, ok := value.(time.Time); ok {
		return at.Format(time.RFC3339)
	}
	return fmt.Sprint(value)
}

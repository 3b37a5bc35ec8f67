package reconcile_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/test/check"
)

// Two objects, in the wrong order: the Deployment refers to the ConfigMap.
const (
	twoObjects = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "1"}}
`
	oneObject = `{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "1"}}`
)

// "Create: observer stopped before: no; started after: yes". The inventory is written before
// the first creation, so that a crash loses nothing.
func TestCreate(t *testing.T) {
	w := newWorld(t, twoObjects, "")
	w.checkCallsOfPass(t,
		"Observe",
		"Write inventory.local status krake.dev/state finalizers",
		"Create ConfigMap config",
		"Create Deployment web",
		"Write inventory.local status status.last_observed_manifest krake.dev/state",
		"Start",
	)
	w.checkReports(t, "Created v1 ConfigMap demo/config", "Created apps/v1 Deployment demo/web")
	w.checkReady(t, application.StateRunning, "Ready", ready)
	w.checkQuiet(t)
}

// "Update: observer stopped before: yes; started after: yes". Events wait between Observe and
// Start: this is the observer's stop.
func TestUpdate(t *testing.T) {
	w := running(t, oneObject, "")
	w.respec(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "2"}}`, "")
	w.checkCallsOfPass(t,
		"Observe",
		"Patch ConfigMap config replace /data/a",
		"Write inventory.local status status.last_applied_manifest status.last_observed_manifest",
		"Start",
	)
	w.checkReports(t, "Configured v1 ConfigMap demo/config: data.a")
	w.checkQuiet(t)
}

// "As an update is performed, the observer is stopped before and started after this
// reconciliation": drift is reverted like an update, by a patch of the one field. In the
// record, only the history changes.
func TestDrift(t *testing.T) {
	w := running(t, twoObjects, "")
	w.change(t, "ConfigMap config", func(live *unstructured.Unstructured) {
		live.Object["data"] = map[string]any{"a": "2", "b": "theirs"}
		fields := `{"f:data": {"f:a": {}, "f:b": {}}}`
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "somebody", Operation: "Update", Time: &metav1.Time{Time: noon}, FieldsV1: metav1.NewFieldsV1(fields),
		}})
	})
	w.checkCallsOfPass(t, "Observe", "Patch ConfigMap config replace /data/a", "Write status", "Start")
	w.checkReports(t, "DriftReverted v1 ConfigMap demo/config: data.a, changed by somebody (Update at 2026-01-02T12:00:00Z), in 12ms")
	w.checkQuiet(t)
}

// "Delete: observer stopped before: yes; started after: no". Objects are deleted in the
// reverse order of their creation, and the Application last.
func TestDelete(t *testing.T) {
	w := running(t, twoObjects, "")
	w.cm.DeletionTimestamp = &metav1.Time{Time: noon}
	w.checkCallsOfPass(t,
		"Stop",
		"Delete Deployment web",
		"Delete ConfigMap config",
		"Write inventory.local status holder.krake.dev/local krake.dev/state finalizers",
	)
	w.checkReports(t, "Deleted apps/v1 Deployment demo/web", "Deleted v1 ConfigMap demo/config")

	w.checkCallsOfPass(t, "Stop") // the cache sends it once more
}

// An object is created from the whole manifest, not only its observed fields,
// in the Application's namespace, with the marks of ownership.
func TestCreatedObject(t *testing.T) {
	w := newWorld(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, labels: {team: x}}, data: {a: "1", b: "1"}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: null}}`)
	w.mustReconcile(t)
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": "config", "namespace": "demo", "uid": "uid of ConfigMap config", "resourceVersion": "3",
			"labels": map[string]any{"team": "x", "krake.dev/owned-by": "2b6b01a3a60a707a"},
			"annotations": map[string]any{
				"krake.dev/owner": "demo/app /ConfigMap/demo/config", "krake.dev/owner-uid": "app-uid",
			},
		},
		"data": map[string]any{"a": "1", "b": "1"},
	}
	check.Equal(t, "object", want, w.objects["ConfigMap config"])
}

// Start receives the written and read objects, so that their events are not news, and the
// state that is desired from then on.
func TestStart(t *testing.T) {
	w := newWorld(t, twoObjects, "")
	w.mustReconcile(t)
	want := []string{"ConfigMap config in version 3", "Deployment web in version 4"}
	check.Equal(t, "seen after the creation", want, w.seen)
	drift(t, w)
	w.mustReconcile(t)
	want = []string{"ConfigMap config in version " + (&unstructured.Unstructured{Object: w.objects["ConfigMap config"]}).GetResourceVersion()}
	check.Equal(t, "seen after a repair", want, w.seen)
	w.mustReconcile(t)
	check.Equal(t, "seen without one", []string(nil), w.seen)
}

// Another client removed the finalizer: it is restored before anything else.
func TestFinalizerIsPutBack(t *testing.T) {
	w := running(t, oneObject, "")
	w.cm.Finalizers = nil
	w.checkCallsOfPass(t, "Observe", "Write finalizers", "Start")
}

// Applications that the loop ignores.
func TestLeftAlone(t *testing.T) {
	cases := []struct {
		name string
		set  func(w *world)
		want []string
	}{
		{"an Application that is gone is not observed any more", func(w *world) { w.cm = nil }, []string{"Stop"}},
		{"nor is a ConfigMap that is none", func(w *world) { w.cm.Annotations = nil }, []string{"Stop"}},
		{"an unknown format is not ours to touch",
			func(w *world) { w.cm.Annotations[application.FormatAnnotation] = "v9" }, nil},
		{"another cluster's Application is its agent's",
			func(w *world) { w.cm.Annotations[application.ClusterAnnotation] = "elsewhere" }, []string{"Stop"}},
		{"what was never ours is not deleted",
			func(w *world) { w.cm.DeletionTimestamp, w.cm.Finalizers = &metav1.Time{Time: noon}, nil }, []string{"Stop"}},
		{"objects that are not all known are not taken for absent",
			func(w *world) { w.failures["Observe"] = observer.ErrNotSynced }, []string{"Observe"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, oneObject, "")
			w.objects = map[string]map[string]any{}
			c.set(w)
			w.checkCallsOfPass(t, c.want...)
		})
	}
}

// The agent ended between two steps: the next one continues there.
func TestAfterACrash(t *testing.T) {
	const create, record = "Create ConfigMap config", "Write inventory.local status status.last_observed_manifest krake.dev/state"
	for crash, want := range map[string][]string{create: {"Observe", create, record, "Start"}, record: {"Observe", record, "Start"}} {
		t.Run(crash, func(t *testing.T) {
			w := newWorld(t, oneObject, "")
			crashAt(t, w, crash)
			w.checkCallsOfPass(t, want...)
		})
	}
}

// crashAt ends a pass at a call, and no part of the call is recorded.
func crashAt(t *testing.T, w *world, call string) {
	t.Helper()
	before := w.cm
	w.failures[call] = errors.New("crash")
	w.failures["Write status krake.dev/state"] = errors.New("crash")
	w.mustFail(t)
	check.Equal(t, "the inventory was written", true, w.cm != before)
	clear(w.failures)
	w.forget()
}

// If the object is deleted between observation and patch, it is created.
func TestGoneBeforeThePatch(t *testing.T) {
	w := running(t, oneObject, "")
	w.vanishing["ConfigMap config"] = true
	w.checkCallsOfPass(t, "Observe", "Create ConfigMap config", "Write status", "Start")
}

// Values in the API server's answer to the creation are learned, and desired from then on
// (Krake documentation, Application controller, step 6).
func TestLearn(t *testing.T) {
	w := newWorld(t, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: ClusterIP, ports: [{port: 80}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: null, clusterIP: null}}`)
	w.answer = writes("10.0.0.7", "spec", "clusterIP")
	w.mustReconcile(t)
	w.answer = func(map[string]any) {}
	check.Equal(t, "Start has the revision from before something was learned", false, w.started[0].Revision == w.observed[0].Revision)
	app := w.app(t)
	learned := []map[string]any{{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"clusterIP": "10.0.0.7"},
	}}
	check.Equal(t, "learned", learned, app.Learned)
	check.Equal(t, "services", map[string]string{"web": "10.0.0.7:80"}, app.Status.Services)
	w.checkQuiet(t)

	w.write(t, "Service web", "10.0.0.8", "spec", "clusterIP")
	w.checkCallsOfPass(t, "Observe", "Patch Service web replace /spec/clusterIP", "Write status", "Start")
}

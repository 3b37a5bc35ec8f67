package reconcile_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// readyApp returns another Application of the namespace, whose present spec is carried out.
func readyApp(name string) *application.Application {
	app := &application.Application{
		NamespacedName: types.NamespacedName{Namespace: appName.Namespace, Name: name},
		Cluster:        application.LocalCluster, Holder: application.LocalCluster, Spec: application.Spec{Manifest: oneObject},
	}
	app.Status.State, app.Status.ObservedSpec = application.StateRunning, app.Spec.Digest()
	app.Status.Conditions = []metav1.Condition{{Type: application.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready"}}
	return app
}

// unreadyApp is readyApp while a Pod of it is not ready.
func unreadyApp(name string, state application.State, reason string) *application.Application {
	app := readyApp(name)
	app.Status.State = state
	app.Status.Conditions[0].Status, app.Status.Conditions[0].Reason = metav1.ConditionFalse, reason
	return app
}

// afterDefinitions returns a new Application that waits for another one, which may be nil.
func afterDefinitions(t *testing.T, definitions *application.Application) *world {
	t.Helper()
	w := newWorld(t, oneObject, "")
	w.annotate(application.AfterAnnotation, "definitions")
	w.name(definitions)
	return w
}

// name replaces the Application that is waited for.
func (w *world) name(definitions *application.Application) {
	w.named = map[string]*application.Application{"definitions": definitions}
}

// checkWaiting makes a pass that reads and writes nothing on the target.
func (w *world) checkWaiting(t *testing.T, message string) {
	t.Helper()
	w.mustRest(t)
	check.Equal(t, "calls of the target", []string(nil), w.callsOf("Observe", "Start", "Create", "Patch", "Delete"))
	w.checkReconciled(t, application.StateCreating, "DependencyNotReady", message)
	w.checkReason(t, application.StalledCondition, "Progressing")
	w.checkReports(t)
	w.checkHeld(t, false)
	check.Empty(t, "history", w.app(t).Status.Drifts)
}

// Before the Applications that it names are ready, an Application creates and claims nothing, and says which one is awaited.
func TestAfterWaits(t *testing.T) {
	cases := []struct {
		name   string
		change func(app *application.Application)
		why    string
	}{
		{"on its way to another cluster", func(app *application.Application) { app.Cluster = "east" }, "on cluster east"},
		{"deleted", func(app *application.Application) { app.Deleted = true }, "being deleted"},
		{"without a signature", func(app *application.Application) { app.NotAdmitted = errors.New("no signature") }, "not admitted"},
		{"with a new spec", func(app *application.Application) { app.Spec.Manifest = twoObjects }, "its present spec is not carried out yet"},
		{"with the status of another cluster", func(app *application.Application) { app.Status = app.Status.On("east") }, "its present spec is not carried out yet"},
		{"without a status", func(app *application.Application) { app.Status = application.Status{} }, "its present spec is not carried out yet"},
		{"not healthy", func(app *application.Application) {
			*app = *unreadyApp(app.Name, application.StateCreating, "InProgress")
		}, "CREATING (InProgress)"},
		{"without the condition", func(app *application.Application) { app.Status.Conditions = nil }, "RUNNING (unknown)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			definitions := readyApp("definitions")
			c.change(definitions)
			w := afterDefinitions(t, definitions)
			w.checkWaiting(t, "Application definitions: "+c.why)
			w.checkWaiting(t, "Application definitions: "+c.why)
			w.checkCalls(t)
			w.name(readyApp("definitions"))
			w.checkPass(t, "Create ConfigMap config")
			w.checkReady(t, application.StateRunning, "Ready", ready)
		})
	}
	t.Run("not there", func(t *testing.T) {
		w := afterDefinitions(t, nil)
		w.checkWaiting(t, "Application definitions: not found on cluster local")
	})
	t.Run("of another format version", func(t *testing.T) {
		w := afterDefinitions(t, readyApp("definitions"))
		w.failures["Read definitions"] = application.ErrFormat
		w.checkWaiting(t, "Application definitions: of another format version")
	})
	t.Run("not readable", func(t *testing.T) {
		w := afterDefinitions(t, readyApp("definitions"))
		w.failures["Read definitions"] = errors.New("no keys")
		w.mustFail(t)
		w.checkCalls(t)
	})
	t.Run("two of three", func(t *testing.T) {
		w := afterDefinitions(t, readyApp("definitions"))
		w.annotate(application.AfterAnnotation, "songs,definitions,artists")
		w.named["songs"] = unreadyApp("songs", application.StateFailed, "Forbidden")
		w.checkWaiting(t, "Application songs: FAILED (Forbidden); Application artists: not found on cluster local")
	})
}

// An Application that has begun is repaired, and takes a new spec, whatever becomes of those that it came after.
func TestAfterIsOverOnceItHasBegun(t *testing.T) {
	w := afterDefinitions(t, readyApp("definitions"))
	w.checkPass(t, "Create ConfigMap config")
	for name, definitions := range map[string]*application.Application{
		"failed": unreadyApp("definitions", application.StateFailed, "Error"), "gone": nil,
	} {
		t.Run(name, func(t *testing.T) {
			w.name(definitions)
			w.checkSilentRestart(t)
			w.change(t, "ConfigMap config", func(live *unstructured.Unstructured) { put(t, live.Object, "data.a", "changed") })
			w.checkPass(t, "Patch ConfigMap config replace /data/a")
			w.checkReady(t, application.StateRunning, "Ready", ready)
		})
	}
	w.respec(twoObjects, "")
	w.checkPass(t, "Create Deployment web")
}

// The mode observe creates nothing, so there is nothing to wait for. A deletion is not held back.
func TestAfterInOtherModes(t *testing.T) {
	w := afterDefinitions(t, nil)
	w.annotate(application.ModeAnnotation, string(application.Observe))
	w.checkPass(t)
	w.checkReason(t, application.ReconciledCondition, "Drifted")
	w.annotate(application.ModeAnnotation, string(application.Suspend))
	w.checkPass(t)
	w.checkReason(t, application.ReadyCondition, "Suspended")
	w.annotate(application.ModeAnnotation, string(application.Enforce))
	w.checkPass(t)
	w.checkReconciled(t, application.StateCreating, "DependencyNotReady", "Application definitions: not found on cluster local")

	w = afterDefinitions(t, readyApp("definitions"))
	w.checkPass(t, "Create ConfigMap config")
	w.name(nil)
	deleted(w)
	w.checkPass(t, "Delete ConfigMap config")
}

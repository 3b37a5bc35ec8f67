package reconcile_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// theirs returns a foreign object. Its annotations may name another owner.
func theirs(apiVersion, kind, name string, annotations map[string]any) map[string]any {
	metadata := map[string]any{"name": name, "namespace": "demo", "uid": "theirs", "resourceVersion": "1"}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
}

// alien creates a foreign object of the same name.
func (w *world) alien(annotations map[string]any) {
	live := theirs("v1", "ConfigMap", "config", annotations)
	live["data"] = map[string]any{"a": "theirs"}
	w.bump(live)
	w.objects["ConfigMap config"] = live
}

// In mode observe, nothing is written to the target, whatever it contains.
func TestObserve(t *testing.T) {
	const missing = "v1 ConfigMap demo/config: the object is missing"
	cases := []struct {
		name            string
		set             func(t *testing.T, w *world)
		reason, message string
		after           []string // the writes after the return to enforce
	}{
		{"all is well", func(*testing.T, *world) {}, "Reconciled", "all objects match the Application", nil},
		{"a field differs", func(t *testing.T, w *world) { drift(t, w) },
			"Drifted", "v1 ConfigMap demo/config: data.a", []string{"Patch ConfigMap config replace /data/a"}},
		{"the object disappeared", func(_ *testing.T, w *world) { w.vanish("ConfigMap config") },
			"Drifted", missing, []string{"Create ConfigMap config"}},
		{"its label was removed, and nobody sees it", func(t *testing.T, w *world) {
			w.change(t, "ConfigMap config", func(live *unstructured.Unstructured) { live.SetLabels(nil) })
			w.unseen["ConfigMap config"] = true
		}, "Drifted", "v1 ConfigMap demo/config: metadata.labels", []string{"Create ConfigMap config", "Patch ConfigMap config add /metadata/labels"}},
		{"there is another object of its name", func(_ *testing.T, w *world) { w.alien(nil) },
			"AlreadyExists", "the object exists and does not belong to this Application: v1 ConfigMap demo/config" + unlessAdopted, nil},
		{"that is to be adopted", func(_ *testing.T, w *world) {
			w.alien(nil)
			w.annotate(application.AdoptAnnotation, true)
		}, "Drifted", "", []string{
			"Patch ConfigMap config add /metadata/annotations add /metadata/labels", "Patch ConfigMap config replace /data/a",
		}},
		{"a resource has come", func(_ *testing.T, w *world) { w.respec(twoObjects, "") },
			"Drifted", "apps/v1 Deployment demo/web: the object is missing", []string{"Create Deployment web"}},
		{"a resource has left", func(_ *testing.T, w *world) {
			w.respec(`{apiVersion: v1, kind: Service, metadata: {name: web}}`, "")
		}, "Drifted", "v1 Service demo/web: the object is missing", []string{"Create Service web", "Delete ConfigMap config"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, oneObject, "")
			w.annotate(application.ModeAnnotation, application.Observe)
			w.mustReconcile(t)
			c.set(t, w)
			held := w.inventory(t)
			for range 3 {
				w.checkPass(t)
			}
			check.Equal(t, "the third time is written", []string(nil), w.writes())
			w.checkReason(t, application.ReconciledCondition, c.reason)
			if c.message != "" {
				w.checkCondition(t, application.ReconciledCondition, c.reason, c.message)
			}
			check.Equal(t, "inventory", held, w.inventory(t))
			w.checkSilentRestart(t)

			delete(w.cm.Annotations, application.ModeAnnotation)
			w.checkPass(t, c.after...)
		})
	}
}

// A drift that was not reverted is reverted and reported as soon as enforcement is on again.
func TestEnforceAgain(t *testing.T) {
	w := running(t, oneObject, "")
	w.annotate(application.ModeAnnotation, application.Observe)
	w.annotate(application.HeldByAnnotation, "anna")
	w.somebody(t, "somebody", "ConfigMap config", "theirs", "data", "a")
	w.mustReconcile(t)
	w.checkReports(t, "HeldBack v1 ConfigMap demo/app: mode observe, set by anna",
		"DriftDetected v1 ConfigMap demo/config: data.a, changed by somebody (Update at 2026-01-02T12:00:02Z); left unchanged: ObserveMode")
	w.checkReady(t, application.StateRunning, "Drifted", "v1 ConfigMap demo/config: data.a")
	w.checkCondition(t, application.DriftedCondition, "ObserveMode", "v1 ConfigMap demo/config: data.a")

	w.annotate(application.ModeAnnotation, application.Enforce)
	w.mustRest(t)
	w.checkReports(t, "Resumed v1 ConfigMap demo/app",
		"DriftReverted v1 ConfigMap demo/config: data.a, changed by somebody (Update at 2026-01-02T12:00:02Z), in 12ms")
	w.checkCondition(t, application.DriftedCondition, "NoDrift", "")
	w.checkReady(t, application.StateRunning, "Ready", ready)
}

// An Application that is observed from its first day owns no object.
func TestObserveFromTheBeginning(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.annotate(application.ModeAnnotation, application.Observe)
	w.checkLastPass(t)
	w.checkHeld(t, false)
	w.checkReason(t, application.ReconciledCondition, "Drifted")
	w.checkConditions(t)
}

// checkConditions checks that all conditions are set.
func (w *world) checkConditions(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		application.ReadyCondition, application.ReconciledCondition, application.DriftedCondition,
		application.ContendedCondition, application.ConflictedCondition, application.StalledCondition,
	} {
		check.Equal(t, "there is a condition "+name, true, meta.FindStatusCondition(w.app(t).Status.Conditions, name) != nil)
	}
}

// The agent does not even read the objects of a suspended Application.
func TestSuspend(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T) *world
		want application.State
	}{
		{"from the beginning", func(t *testing.T) *world { return newWorld(t, oneObject, "") }, application.StateCreating},
		{"after a while", func(t *testing.T) *world {
			w := running(t, oneObject, "")
			drift(t, w)
			return w
		}, application.StateRunning},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.make(t)
			w.annotate(application.ModeAnnotation, application.Suspend)
			w.mustReconcile(t)
			check.Equal(t, "the first call", "Stop", w.calls[0])
			check.Empty(t, "calls of the target", w.callsOf("Observe", "Create", "Patch", "Delete"))
			const message = "the Application is suspended: the agent ignores its objects until you resume it (kubectl krake resume)"
			w.checkReconciled(t, c.want, "Suspended", message)
			w.checkCondition(t, application.DriftedCondition, "Suspended", message)
			w.checkConditions(t)
			w.checkSilentRestart(t)

			w.annotate(application.ModeAnnotation, application.Enforce)
			w.mustRest(t)
			check.Equal(t, "writes to the target", 1, len(w.touches()))
			w.checkReady(t, application.StateRunning, "Ready", ready)
		})
	}
}

// An Application that is deleted follows its deletion policy in every mode.
func TestDeletionInEveryMode(t *testing.T) {
	for _, mode := range []application.Mode{application.Enforce, application.Observe, application.Suspend} {
		for _, policy := range []application.DeletionPolicy{application.Delete, application.Orphan} {
			t.Run(string(mode)+", "+string(policy), func(t *testing.T) {
				w := running(t, oneObject, "")
				w.annotate(application.ModeAnnotation, mode)
				w.annotate(application.DeletionPolicyAnnotation, policy)
				w.mustReconcile(t)
				deleted(w)
				w.mustRest(t)
				w.checkExists(t, "ConfigMap config", policy == application.Orphan)
				w.checkHeld(t, false)
			})
		}
	}
}

// What the webhook has not admitted is not carried out: no object is created, repaired or deleted. The status says so,
// once. A deletion goes on, because it needs only the inventory.
func TestUnsigned(t *testing.T) {
	w := running(t, oneObject, "")
	drift(t, w)
	w.respec(twoObjects, "")
	w.unsigned = true
	w.mustReconcile(t)
	w.checkPass(t)
	check.Equal(t, "writes", []string(nil), w.writes())
	w.checkReason(t, application.ReconciledCondition, "NotAdmitted")
	w.checkReason(t, application.StalledCondition, "NotAdmitted")
	w.checkState(t, application.StateFailed)

	w.unsigned = false
	w.checkPass(t, "Create Deployment web", "Patch ConfigMap config replace /data/a")
	w.unsigned = true
	w.cm.DeletionTimestamp = &metav1.Time{Time: w.now}
	w.checkPass(t, "Delete Deployment web", "Delete ConfigMap config")
}

// The agent of a former cluster deletes nothing for a move that was not admitted.
func TestAnUnsignedMoveIsIgnored(t *testing.T) {
	w := running(t, oneObject, "")
	w.annotate(application.ClusterAnnotation, "other")
	w.unsigned = true
	held := w.inventory(t)
	w.checkPass(t)
	check.Equal(t, "writes", []string(nil), w.writes())
	check.Equal(t, "inventory", held, w.inventory(t))
}

package reconcile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// An orphaned object loses all of our marks, and keeps everything else.
func TestOrphan(t *testing.T) {
	w := running(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, labels: {team: x}}, data: {a: "1"}}`, "")
	w.hold(t, noon.Add(time.Hour))
	w.annotate(application.DeletionPolicyAnnotation, application.Orphan)
	deleted(w)
	w.mustReconcile(t)
	w.checkCalls(t, "Stop", "Read ConfigMap config",
		"Patch ConfigMap config remove /metadata/labels/krake.dev~1owned-by "+
			"remove /metadata/annotations/krake.dev~1owner remove /metadata/annotations/krake.dev~1owner-uid",
		"Write inventory.local status holder.krake.dev/local krake.dev/state finalizers")
	w.checkReports(t, "Orphaned v1 ConfigMap demo/config")
	w.checkHeld(t, false)
	live := &unstructured.Unstructured{Object: w.objects["ConfigMap config"]}
	check.Equal(t, "labels", map[string]string{"team": "x"}, live.GetLabels())
	if diff := cmp.Diff(map[string]string{application.HoldUntilAnnotation: "2026-01-02T13:00:00Z"}, live.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff) // a hold belongs to its user
	}
}

// To orphan an Application, the agent does not touch foreign objects, and absent objects stay
// absent.
func TestOrphanLeavesForeignObjects(t *testing.T) {
	w := running(t, twoObjects, "")
	w.annotate(application.DeletionPolicyAnnotation, application.Orphan)
	deleted(w)
	w.change(t, "Deployment web", func(live *unstructured.Unstructured) {
		live.SetAnnotations(map[string]string{application.OwnerAnnotation: "demo/other apps/Deployment/demo/web"})
	})
	delete(w.objects, "ConfigMap config")
	w.mustReconcile(t)
	w.checkTouches(t)
	w.checkHeld(t, false)
}

// The condition names what blocks a deletion. The longer it lasts, the less often the agent
// checks.
func TestBlockedDeletion(t *testing.T) {
	const message = "v1 ConfigMap demo/config: its deletion waits for its finalizers somebody/keeps, other/too"
	cases := []struct {
		name   string
		remove func(w *world)
		// stalled is the message of Stalled. Without a pass, no object of the status has the details.
		stalled string
	}{
		{"of the Application", deleted, message},
		{"of what left the spec", func(w *world) { w.respec(`{apiVersion: v1, kind: Service, metadata: {name: web}}`, "") }, "v1 ConfigMap demo/config"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, oneObject, "")
			w.finalize(t, "ConfigMap config", "somebody/keeps", "other/too")
			c.remove(w)
			w.step = 0
			var patience []time.Duration
			begin := w.now
			for _, after := range []time.Duration{0, 4 * time.Second, 40 * time.Second, 2 * time.Minute, time.Hour} {
				w.now = begin.Add(after)
				patience = append(patience, w.mustPass(t))
			}
			want := []time.Duration{2 * time.Second, 2 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute}
			check.Equal(t, "patience", want, patience)
			w.checkCondition(t, application.StalledCondition, "DeletionBlocked", c.stalled)
			w.checkCondition(t, application.ReconciledCondition, "DeletionBlocked", message)
			w.checkReason(t, application.ReadyCondition, "DeletionBlocked")
			w.checkSilentRestart(t)

			w.finalize(t, "ConfigMap config")
			w.mustPass(t)
			for _, held := range w.inventory(t) {
				if held == "ConfigMap config" {
					t.Error("it is still held")
				}
			}
		})
	}
}

// If an object that was removed from the spec cannot be deleted, the condition reports it, and
// the agent tries again.
func TestFailedRemovalIsTold(t *testing.T) {
	w := running(t, twoObjects, "")
	w.respec(oneObject, "")
	w.failures["Delete Deployment web"] = errNo("web")
	for range 2 {
		w.forget()
		w.mustFail(t)
		w.checkReconciled(t, application.StateFailed, "Forbidden", "apps/v1 Deployment demo/web: Forbidden: configmaps web"+unlessBound)
	}
	clear(w.failures)
	w.mustReconcile(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
}

// The same holds for the objects of a deleted Application.
func TestFailedDeletionIsTold(t *testing.T) {
	w := running(t, oneObject, "")
	deleted(w)
	w.failures["Delete ConfigMap config"] = errNo("config")
	w.forget()
	w.mustFail(t)
	w.checkReady(t, application.StateDeleting, "Forbidden", "v1 ConfigMap demo/config: Forbidden: configmaps config"+unlessBound)
}

// The target no longer serves the version by which an object was created, but another one. The
// object still exists, and is deleted by that version.
func TestDeletionInAnotherVersion(t *testing.T) {
	w := running(t, twoObjects, "")
	const created = `"apiVersion":"apps/v1","kind":"Deployment"`
	key := application.InventoryKey(application.LocalCluster)
	if !strings.Contains(w.cm.Data[key], created) {
		t.Fatal(w.cm.Data[key])
	}
	w.cm.Data[key] = strings.Replace(w.cm.Data[key], created, `"apiVersion":"apps/v1beta1","kind":"Deployment"`, 1)
	deleted(w)
	w.mustReconcile(t)
	if len(w.objects) > 0 || w.app(t).Finalized {
		t.Errorf("left: %v", w.objects)
	}
}

package reconcile_test

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

func deleted(w *world) { w.cm.DeletionTimestamp = &metav1.Time{Time: noon} }

// disown removes the proof from an object. The label may stay.
func disown(t *testing.T, w *world, name string) {
	t.Helper()
	w.change(t, name, func(live *unstructured.Unstructured) { live.SetAnnotations(nil) })
}

// An object that is removed from the spec is deleted if it proves to be ours. It stays in the
// inventory until it is gone.
func TestRemovedFromTheSpec(t *testing.T) {
	cases := []struct {
		name   string
		set    func(t *testing.T, w *world)
		calls  []string
		held   []string
		failed bool
	}{
		{"ours", func(*testing.T, *world) {}, []string{"Delete Deployment web"}, []string{"ConfigMap config"}, false},
		{"gone already", func(_ *testing.T, w *world) { delete(w.objects, "Deployment web") }, nil, []string{"ConfigMap config"}, false},
		{"not ours: it stays, and is no concern of ours any more",
			func(t *testing.T, w *world) { disown(t, w, "Deployment web") }, nil, []string{"ConfigMap config"}, false},
		{"of a former Application of this name", func(t *testing.T, w *world) {
			w.change(t, "Deployment web", func(live *unstructured.Unstructured) {
				annotations := live.GetAnnotations()
				annotations[application.OwnerUIDAnnotation] = "former"
				live.SetAnnotations(annotations)
			})
		}, nil, []string{"ConfigMap config"}, false},
		{"kept by a finalizer", func(t *testing.T, w *world) { w.finalize(t, "Deployment web", "somebody/keeps") },
			[]string{"Delete Deployment web"}, []string{"ConfigMap config", "Deployment web"}, false},
		{"we must not", func(_ *testing.T, w *world) {
			w.failures["Delete Deployment web"] = apierrors.NewForbidden(resource, "web", errors.New("no"))
		}, []string{"Delete Deployment web"}, []string{"ConfigMap config", "Deployment web"}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, twoObjects, "")
			c.set(t, w)
			before := w.objects["Deployment web"]
			w.respec(oneObject, "")
			if _, err := w.reconcile(t); (err != nil) != c.failed {
				t.Errorf("error %v", err)
			}
			w.checkTouches(t, c.calls...)
			if c.calls == nil && before != nil && w.objects["Deployment web"] == nil {
				t.Error("the object is gone")
			}
			check.Equal(t, "inventory", c.held, w.inventory(t))
		})
	}
}

// While a finalizer blocks the deletion of a removed object, the agent checks the object again
// and again.
func TestAHeldRemovalIsLookedAtAgain(t *testing.T) {
	w := running(t, twoObjects, "")
	w.finalize(t, "Deployment web", "somebody/keeps")
	w.respec(oneObject, "")
	result, err := w.reconcile(t)
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("result %v, error %v: it is not looked at again", result, err)
	}
	w.finalize(t, "Deployment web")
	w.mustReconcile(t)
	check.Equal(t, "inventory", []string{"ConfigMap config"}, w.inventory(t))
}

// An entry of the inventory is only a hint: without the object's own proof, a forged entry has
// no effect.
func TestForgedInventory(t *testing.T) {
	w := running(t, oneObject, "")
	w.objects["Service theirs"] = map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "theirs", "namespace": "kube-system"},
	}
	app := w.app(t)
	app.Inventory = append(app.Inventory, manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "kube-system", Name: "theirs"})
	check.Must(t, app.Record(w.cm))
	w.mustReconcile(t)
	w.checkCalls(t, "Observe", "Write inventory.local", "Start")
	if w.objects["Service theirs"] == nil {
		t.Error("it was deleted")
	}
}

// Another version of its API serves the same object: it is not deleted.
func TestChangeOfAPIVersion(t *testing.T) {
	w := running(t, `{apiVersion: apps/v1beta2, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}`, "")
	w.respec(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}`, "")
	w.objects["Deployment web"]["apiVersion"] = "apps/v1" // as the other version serves it
	w.mustReconcile(t)
	if slices.Contains(w.calls, "Delete Deployment web") {
		t.Error("it was deleted")
	}
	want := []manifest.ID{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"}}
	check.Equal(t, "inventory", want, w.app(t).Inventory)
	w.checkQuiet(t)
}

// The Application is deleted after its objects, not before.
func TestDeletionWaits(t *testing.T) {
	w := running(t, twoObjects, "")
	deleted(w)
	w.finalize(t, "ConfigMap config", "somebody/keeps")
	w.checkRequeued(t)
	w.checkCalls(t, "Stop", "Delete Deployment web", "Delete ConfigMap config", "Write inventory.local status krake.dev/state")
	w.checkReports(t, "Deleted apps/v1 Deployment demo/web")
	w.checkHeld(t, true, "ConfigMap config")

	w.finalize(t, "ConfigMap config")
	w.mustReconcile(t)
	w.checkHeld(t, false)
	if holder := application.HolderLabel(application.LocalCluster); w.cm.Labels[holder] != "" {
		t.Error("the holder's label is still there")
	}
}

func (w *world) checkHeld(t *testing.T, finalized bool, want ...string) {
	t.Helper()
	check.Equal(t, "inventory", want, w.inventory(t))
	if got := w.app(t).Finalized; got != finalized {
		t.Errorf("finalizer is %v, want %v", got, finalized)
	}
}

// An object that cannot be deleted does not block the others, but it blocks the Application.
func TestDeletionFails(t *testing.T) {
	w := running(t, twoObjects, "")
	deleted(w)
	w.failures["Delete Deployment web"] = apierrors.NewForbidden(resource, "web", errors.New(secret))
	_, err := w.reconcile(t)
	if err == nil || err.Error() != "Forbidden: configmaps web" {
		t.Errorf("error is %v", err)
	}
	w.checkHeld(t, true, "Deployment web")
	if w.objects["ConfigMap config"] != nil {
		t.Error("the other object is still there")
	}
}

// The remaining objects stay in the order of their creation, so that a mere retry writes
// nothing.
func TestDeletionOfSeveralFails(t *testing.T) {
	w := running(t, twoObjects, "")
	deleted(w)
	w.finalize(t, "Deployment web", "somebody/keeps")
	w.finalize(t, "ConfigMap config", "somebody/keeps")
	w.checkRequeued(t)
	w.checkHeld(t, true, "ConfigMap config", "Deployment web")
	w.forget()
	w.checkRequeued(t)
	w.checkCalls(t, "Stop")
}

// An Application does not delete foreign objects, and they do not block its deletion.
func TestDeletionLeavesForeignObjects(t *testing.T) {
	w := running(t, twoObjects, "")
	deleted(w)
	disown(t, w, "Deployment web")
	w.mustReconcile(t)
	if w.objects["Deployment web"] == nil {
		t.Error("a foreign object was deleted")
	}
	w.checkReports(t, "Deleted v1 ConfigMap demo/config")
	w.checkHeld(t, false)
}

// The objects of a kind that is no longer served are gone.
func TestDeletionOfAKindThatIsGone(t *testing.T) {
	w := running(t, oneObject, "")
	app := w.app(t)
	app.Inventory = append(app.Inventory, manifest.ID{APIVersion: "example.com/v1", Kind: "Opera", Namespace: "demo", Name: "tosca"})
	check.Must(t, app.Record(w.cm))
	deleted(w)
	w.mustReconcile(t)
	w.checkHeld(t, false)
}

package reconcile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// An orphaned object loses all of our marks, and keeps everything else.
func TestOrphan(t *testing.T) {
	w := running(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, labels: {team: x}}, data: {a: "1"}}`, "")
	w.hold(t, noon.Add(time.Hour))
	w.annotate(application.DeletionPolicyAnnotation, application.Orphan)
	deleted(w)
	w.checkCallsOfPass(t, "Stop", "Read ConfigMap config",
		"Patch ConfigMap config remove /metadata/labels/krake.dev~1owned-by "+
			"remove /metadata/annotations/krake.dev~1owner remove /metadata/annotations/krake.dev~1owner-uid",
		"Write inventory.local status holder.krake.dev/local krake.dev/state finalizers")
	w.checkReports(t, "Orphaned v1 ConfigMap demo/config")
	w.checkHeld(t, false)
	live := &unstructured.Unstructured{Object: w.objects["ConfigMap config"]}
	check.Equal(t, "labels", map[string]string{"team": "x"}, live.GetLabels())
	check.Equal(t, "annotations", map[string]string{application.HoldUntilAnnotation: "2026-01-02T13:00:00Z"}, live.GetAnnotations()) // a hold belongs to its user
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
	w.checkLastPass(t)
	w.checkHeld(t, false)
}

// The condition names what blocks a deletion. The longer it lasts, the less often the agent
// checks.
func TestBlockedDeletion(t *testing.T) {
	const message = "v1 ConfigMap demo/config: its deletion waits for its finalizers somebody/keeps, other/too: the programs that set them remove them; if one no longer runs, remove its finalizer (kubectl edit)"
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
			check.Equal(t, "it is still held", false, slices.Contains(w.inventory(t), "ConfigMap config"))
		})
	}
}

// The target no longer serves the version by which an object was created, but another one. The
// object still exists, and is deleted by that version.
func TestDeletionInAnotherVersion(t *testing.T) {
	w := running(t, twoObjects, "")
	const created = `"apiVersion":"apps/v1","kind":"Deployment"`
	key := application.InventoryKey(application.LocalCluster)
	check.Equal(t, "the inventory has the version", true, strings.Contains(w.cm.Data[key], created))
	w.cm.Data[key] = strings.Replace(w.cm.Data[key], created, `"apiVersion":"apps/v1beta1","kind":"Deployment"`, 1)
	deleted(w)
	w.mustReconcile(t)
	w.checkObjects(t, 0)
	w.checkHeld(t, false)
}

func deleted(w *world) { w.cm.DeletionTimestamp = &metav1.Time{Time: noon} }

// disown removes the proof from an object. The label may stay.
func disown(t *testing.T, w *world, name string) {
	t.Helper()
	w.change(t, name, func(live *unstructured.Unstructured) { live.SetAnnotations(nil) })
}

// A key that leaves a map with one writer, such as a nodeSelector, has left the manifest, and is also more than the map may
// have. It is removed once: the API server refuses a patch that removes a field twice.
func TestAKeyLeavesAnAtomicMap(t *testing.T) {
	const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeSelector: {KEY"kubernetes.io/os": linux}, containers: [{name: web, image: "web:1"}]}
`
	w := running(t, strings.Replace(manifest, "KEY", `ready: "true", `, 1), "")
	w.respec(strings.Replace(manifest, "KEY", "", 1), "")
	w.checkPass(t, "Patch Deployment web remove /spec/template/spec/nodeSelector/ready")
	got, _, _ := unstructured.NestedMap(w.objects["Deployment web"], "spec", "template", "spec", "nodeSelector")
	check.Equal(t, "nodeSelector", map[string]any{"kubernetes.io/os": "linux"}, got)
}

// A field that becomes null in the manifest has left it, as for kubectl apply. What another client has changed stays.
func TestAFieldBecomesNull(t *testing.T) {
	const before, after = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: "1", b: "2"}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: null}`
	w := running(t, before, "")
	w.respec(after, "")
	w.checkPass(t, "Patch ConfigMap settings remove /data")
	w.checkQuiet(t)
	w.checkSilentRestart(t)

	w = running(t, before, "")
	w.somebody(t, "somebody", "ConfigMap settings", "3", "data", "b")
	w.respec(after, "")
	w.checkPass(t, "Patch ConfigMap settings remove /data/a")
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
			w.write(t, "Deployment web", "former", "metadata", "annotations", application.OwnerUIDAnnotation)
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
			_, err := w.reconcile(t)
			check.Equal(t, "it fails: "+check.Message(err), c.failed, err != nil)
			w.checkTouches(t, c.calls...)
			if c.calls == nil && before != nil && w.objects["Deployment web"] == nil {
				t.Error("the object is gone")
			}
			check.Equal(t, "inventory", c.held, w.inventory(t))
		})
	}
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
	w.checkCallsOfPass(t, "Observe", "Write inventory.local", "Start")
	w.checkExists(t, "Service theirs", true)
}

// Another version of its API serves the same object: it is not deleted.
func TestChangeOfAPIVersion(t *testing.T) {
	w := running(t, `{apiVersion: apps/v1beta2, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}`, "")
	w.respec(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1}}`, "")
	w.objects["Deployment web"]["apiVersion"] = "apps/v1" // as the other version serves it
	w.mustReconcile(t)
	check.Empty(t, "deletions", w.callsOf("Delete"))
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
	check.Equal(t, "label of the holder", "", w.cm.Labels[application.HolderLabel(application.LocalCluster)])
}

func (w *world) checkHeld(t *testing.T, finalized bool, want ...string) {
	t.Helper()
	check.Equal(t, "inventory", want, w.inventory(t))
	check.Equal(t, "finalizer", finalized, w.app(t).Finalized)
}

// An object that cannot be deleted does not block the others, but it blocks the Application.
func TestDeletionFails(t *testing.T) {
	w := running(t, twoObjects, "")
	deleted(w)
	w.failures["Delete Deployment web"] = noRight("web")
	_, err := w.reconcile(t)
	check.Equal(t, "error", "Forbidden: configmaps web", check.Message(err))
	w.checkHeld(t, true, "Deployment web")
	w.checkExists(t, "ConfigMap config", false)
}

// An Application does not delete foreign objects, and they do not block its deletion.
func TestDeletionLeavesForeignObjects(t *testing.T) {
	w := running(t, twoObjects, "")
	deleted(w)
	disown(t, w, "Deployment web")
	w.mustReconcile(t)
	w.checkExists(t, "Deployment web", true)
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

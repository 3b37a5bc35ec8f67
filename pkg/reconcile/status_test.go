package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// The first change of the status is written at once. Later changes are written together after
// a second, and none is lost.
func TestStatusIsWrittenOncePerSecond(t *testing.T) {
	w := running(t, oneObject, "")
	w.step = 10 * time.Second
	drift(t, w)
	w.mustReconcile(t) // written at once
	w.step = 100 * time.Millisecond
	for i := range 3 {
		w.somebody(t, fmt.Sprint("somebody-", i), "ConfigMap config", "theirs", "data", "a")
		w.checkAfter(t, w.step, time.Second-time.Duration(i+1)*w.step)
		w.checkCalls(t, "Observe", "Patch ConfigMap config replace /data/a", "Start") // repaired at once
	}
	w.step = 700 * time.Millisecond
	w.checkCallsOfPass(t, "Observe", "Write status", "Start")
	var managers []string
	for _, drift := range w.app(t).Status.Drifts {
		managers = append(managers, drift.Manager)
	}
	check.Equal(t, "drifts", []string{"somebody-2", "somebody-1", "somebody-0", ""}, managers)
	w.step = 2 * time.Second
	w.checkQuiet(t)
}

// A delayed status is not written after a newer one: neither an older inventory nor older
// conditions.
func TestWhatWaitedIsNotWrittenLater(t *testing.T) {
	waiting := func(t *testing.T) *world {
		t.Helper()
		w := running(t, oneObject, "")
		drift(t, w)
		w.mustReconcile(t)
		w.step = 100 * time.Millisecond
		w.somebody(t, "somebody", "ConfigMap config", "theirs", "data", "a")
		if result, err := w.pass(t); err != nil || result.RequeueAfter == 0 {
			t.Fatalf("result %+v, error %v: nothing waits", result, err)
		}
		return w
	}
	t.Run("what was created, though that could not be recorded", func(t *testing.T) {
		w := waiting(t)
		w.respec(twoObjects, "")
		w.failures["Write inventory.local status status.last_applied_manifest status.last_observed_manifest"] = apierrors.NewConflict(resource, "app", errors.New("changed"))
		w.forget()
		w.checkRequeued(t)
		clear(w.failures)
		w.unseen["Deployment web"] = true // unseen by the observers: only the inventory records it
		w.respec(oneObject, "")
		w.mustPass(t)
		w.checkExists(t, "Deployment web", false)
	})
	t.Run("that it was refused", func(t *testing.T) {
		w := waiting(t)
		w.respec(`{apiVersion: v1, kind: Namespace, metadata: {name: other}}`, "")
		w.mustReconcile(t)
		w.checkCallsOfPass(t)
	})
}

// The history keeps the last ten entries, the newest first. Repeated drift by the same manager
// is counted in one entry, so that it does not displace others.
func TestHistory(t *testing.T) {
	w := running(t, oneObject, "")
	for i := range 11 {
		w.somebody(t, fmt.Sprintf("manager-%02d", i), "ConfigMap config", "theirs", "data", "a")
		w.mustReconcile(t)
	}
	for range 3 {
		w.somebody(t, "manager-07", "ConfigMap config", "theirs", "data", "a")
		w.mustReconcile(t)
	}
	var history []string
	for _, drift := range w.app(t).Status.Drifts {
		history = append(history, fmt.Sprintf("%s x%d: %s, after %s", drift.Manager, drift.Count, drift.Repaired, drift.After.Duration))
	}
	want := []string{"manager-07 x4: DriftReverted, after 12ms"}
	for _, i := range []int{10, 9, 8, 6, 5, 4, 3, 2, 1} {
		want = append(want, fmt.Sprintf("manager-%02d x1: DriftReverted, after 12ms", i))
	}
	check.Equal(t, "history", want, history)
}

// For a value that may be a secret, only the path is recorded. Other values are recorded if
// they are short, and as digests if not.
func TestValuesInTheHistory(t *testing.T) {
	container := func(fields string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, template: {spec: {containers: [{name: main, ` + fields + `}]}}}}`
	}
	inContainer := func(name string, value any) func(map[string]any) {
		return writes([]any{map[string]any{"name": "main", name: value}}, "spec", "template", "spec", "containers")
	}
	long := strings.Repeat("x", 65)
	cases := []struct {
		name, object, manifest string
		change                 func(map[string]any)
		want                   []application.DriftedField
	}{
		{"a number", "Deployment web", container(`image: "main:1"`), writes(int64(5), "spec", "replicas"),
			[]application.DriftedField{{Path: "spec.replicas", Want: int64(1), Have: int64(5)}}},
		{"a short text", "Deployment web", container(`image: "main:1"`), inContainer("image", "main:2"),
			[]application.DriftedField{{Path: "spec.template.spec.containers[0].image", Want: "main:1", Have: "main:2"}}},
		{"a long text", "Deployment web", container(`image: "main:1"`), inContainer("image", long),
			[]application.DriftedField{{Path: "spec.template.spec.containers[0].image", Want: "main:1", Have: "sha256:cfa70e8e4988"}}},
		{"an environment", "Deployment web", container(`env: [{name: password, value: "1"}]`),
			inContainer("env", []any{map[string]any{"name": "password", "value": secret}}),
			[]application.DriftedField{{Path: "spec.template.spec.containers[0].env[0].value"}}},
		{"all of a Secret", "Secret key", `{apiVersion: v1, kind: Secret, metadata: {name: key}, type: Opaque}`,
			writes(secret, "type"), []application.DriftedField{{Path: "type"}}},
	}
	for _, c := range cases {
		for _, mode := range []application.Mode{application.Enforce, application.Observe} {
			t.Run(c.name+", "+string(mode), func(t *testing.T) {
				w := running(t, c.manifest, "")
				w.annotate(application.ModeAnnotation, mode)
				w.change(t, c.object, func(live *unstructured.Unstructured) { c.change(live.Object) })
				w.mustReconcile(t)
				drifts := w.app(t).Status.Drifts
				if len(drifts) != 1 {
					t.Fatalf("drifts: %+v", drifts)
				}
				check.Equal(t, "fields", c.want, drifts[0].Fields)
				checkLacks(t, secret, w.cm.Data[application.StatusKey], strings.Join(w.reports, ""))
			})
		}
	}
}

// Where many objects are not ready, the condition counts them and names the first. The status has the
// reason of each.
func TestManyObjectsThatAreNotReadyAreCounted(t *testing.T) {
	w := newWorld(t, deployments(12), "")
	w.answer = func(live map[string]any) {
		if name := (&unstructured.Unstructured{Object: live}).GetName(); name < "web-005" {
			status, _ := live["status"].(map[string]any)
			status["availableReplicas"], status["readyReplicas"] = int64(1), int64(1)
			status["conditions"] = []any{map[string]any{"type": "Available", "status": "False"}}
		}
	}
	w.mustReconcile(t)
	w.checkCondition(t, application.ReadyCondition, "InProgress", "5 of 12 objects: apps/v1 Deployment demo/web-000: InProgress: Available: 1/2; and 4 more")
	status := w.app(t).Status
	check.Equal(t, "state", application.StateDegraded, status.State)
	check.Equal(t, "label", string(application.StateDegraded), w.cm.Labels[application.StateLabel])
	check.Equal(t, "Pods", &application.ContainerHealth{DesiredPods: 24, RunningPods: 19}, status.ContainerHealth)
	for i, object := range status.Objects {
		health, message := "Current", ""
		if i < 5 {
			health, message = "InProgress", "Available: 1/2"
		}
		check.Equal(t, object.Name, []string{health, message}, []string{object.Health, object.Message})
	}
	w.checkReason(t, application.ReconciledCondition, "Reconciled")
	w.checkSilentRestart(t)
}

// A document that another client has changed is replaced by the known content.
func TestDocumentsThatSomebodyHasChanged(t *testing.T) {
	w := running(t, oneObject, "")
	w.step = 10 * time.Second
	w.mustReconcile(t)
	for _, key := range []string{application.LastAppliedKey, application.LastObservedKey} {
		before := w.cm.Data[key]
		w.cm = w.cm.DeepCopy()
		w.cm.Data[key] = "[]"
		w.cm.ResourceVersion = w.next()
		w.mustReconcile(t)
		check.Equal(t, key, before, w.cm.Data[key])
	}
}

// While many Applications have drifts, a status that only records repairs waits for its turn.
// Repairs do not wait for that, and other changes of the status do not wait either.
func TestStatusWaitsForRepairsOfOthers(t *testing.T) {
	w := running(t, oneObject, "")
	w.step = 10 * time.Second
	w.mustReconcile(t)
	w.othersTell(5 + 3)
	w.somebody(t, "kubectl-edit", "ConfigMap config", "theirs", "data", "a")
	w.checkAfter(t, w.step, 800*time.Millisecond)
	w.checkCalls(t, "Observe", "Patch ConfigMap config replace /data/a", "Start")
	w.step = 800 * time.Millisecond
	w.checkCallsOfPass(t, "Observe", "Write status", "Start")
	w.step = 10 * time.Second
	w.checkQuiet(t)

	w.othersTell(1000)
	w.somebody(t, "kubectl-edit", "ConfigMap config", "theirs", "data", "a")
	w.checkAfter(t, w.step, 20*time.Second)
	w.respec(twoObjects, "")
	w.mustRest(t)
	app := w.app(t)
	check.Equal(t, "spec of the status", app.Spec.Digest(), app.Status.ObservedSpec)
}

// othersTell reserves this many history writes for other Applications, at the time of the next
// pass.
func (w *world) othersTell(n int) {
	for range n {
		w.OtherHistory(w.now.Add(w.step))
	}
}

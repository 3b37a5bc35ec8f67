package reconcile_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// web is a workload of one container.
const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1,
  template: {spec: {containers: [{name: main, image: "main:1"}]}}}}`

// writes gives an API server, or a webhook there, that always writes this value.
func writes(value any, path ...string) func(map[string]any) {
	return func(live map[string]any) {
		if err := unstructured.SetNestedField(live, value, path...); err != nil {
			panic(err) // a mistake of the test
		}
	}
}

// removes takes a field away.
func removes(path ...string) func(map[string]any) {
	return func(live map[string]any) { unstructured.RemoveNestedField(live, path...) }
}

// somebody writes this value, and leaves a trace of it.
func (w *world) somebody(t *testing.T, manager, name string, value any, path ...string) {
	t.Helper()
	w.change(t, name, func(live *unstructured.Unstructured) {
		writes(value, path...)(live.Object)
		fields := "{}"
		for _, name := range slices.Backward(path) {
			fields = fmt.Sprintf(`{"f:%s":%s}`, name, fields)
		}
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: "Update", Time: &metav1.Time{Time: w.now}, FieldsV1: metav1.NewFieldsV1(fields),
		}})
	})
}

// What the answer to a creation has otherwise is the API server's way to write
// it: it is told, remembered beyond this process, and no drift.
func TestACreationIsWrittenOtherwise(t *testing.T) {
	cases := []struct {
		name, manifest string
		answer         func(map[string]any)
		object, fields string
		forms          []any
	}{
		{
			"a value in other words", oneObject, writes("one", "data", "a"),
			"v1 ConfigMap demo/config", "data.a",
			[]any{map[string]any{"path": []any{"data", "a"}, "want": "1", "have": "one"}},
		},
		{
			"a webhook that adds a container, though the schema allows for none", web, func(live map[string]any) {
				containers, _, _ := unstructured.NestedSlice(live, "spec", "template", "spec", "containers")
				writes(append(containers, map[string]any{"name": "sidecar", "image": "side:1"}), "spec", "template", "spec", "containers")(live)
			},
			"apps/v1 Deployment demo/web", "spec.template.spec.containers",
			[]any{map[string]any{"path": []any{"spec", "template", "spec", "containers"}, "want": int64(1), "have": int64(2)}},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.manifest, "")
			w.answer = c.answer
			w.mustReconcile(t)
			w.answer = func(map[string]any) {}
			w.checkReady(t, application.StateRunning, "Ready", ready)
			w.checkCondition(t, application.ReconciledCondition, "WrittenOtherwise",
				"the API server, or a webhook there, writes otherwise: "+c.object+": "+c.fields)
			var forms []any
			for _, entry := range w.app(t).Learned {
				forms, _ = entry["krake.dev/forms"].([]any)
			}
			check.Equal(t, "forms", c.forms, forms)
			w.checkQuiet(t)
			w.checkSilentRestart(t)
		})
	}
}

// A webhook that rewrites an observed field on every write gets one write, and
// then has its way: another would be answered in the same way for ever.
func TestAWebhookThatRewrites(t *testing.T) {
	w := running(t, oneObject, "")
	w.answer = writes("webhook's", "data", "a")
	w.somebody(t, "somebody", "ConfigMap config", "theirs", "data", "a")
	w.mustReconcile(t)
	w.checkTouches(t, "Patch ConfigMap config replace /data/a")
	w.checkCondition(t, application.ReconciledCondition, "WrittenOtherwise",
		"the API server, or a webhook there, writes otherwise: v1 ConfigMap demo/config: data.a")
	w.checkQuiet(t)
	w.checkSilentRestart(t)

	// Any other value is a drift as before.
	w.forget()
	w.somebody(t, "somebody", "ConfigMap config", "other", "data", "a")
	w.mustReconcile(t)
	w.checkTouches(t, "Patch ConfigMap config replace /data/a")
	w.checkQuiet(t)
}

// A form says nothing of another desired value: it is forgotten with the former.
func TestAFormOfAFormerValue(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.answer = writes("one", "data", "a")
	w.mustReconcile(t)
	w.answer = func(map[string]any) {}
	w.respec(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "2"}}`, "")
	w.mustRest(t)
	w.checkTouches(t, "Patch ConfigMap config replace /data/a")
	w.checkReason(t, application.ReconciledCondition, "Reconciled")
	w.checkNothingLearned(t)

	// Back to the former value: what was learned of it is not known any more.
	w.respec(oneObject, "")
	w.mustRest(t)
	w.checkTouches(t, "Patch ConfigMap config replace /data/a")
	w.checkSilentRestart(t)
}

// What is left as it is on purpose is no way of the API server to write it: it
// is repaired when its time comes.
func TestWhatIsHeldIsNoForm(t *testing.T) {
	w := running(t, oneObject, "")
	w.annotate(application.HoldUntilAnnotation, w.now.Add(time.Minute))
	w.change(t, "ConfigMap config", func(live *unstructured.Unstructured) {
		live.SetLabels(nil)
		live.Object["data"] = map[string]any{"a": "theirs"}
	})
	w.checkPass(t, "Patch ConfigMap config add /metadata/labels")
	w.checkNothingLearned(t)
	w.now = w.now.Add(time.Minute)
	w.mustRest(t)
	w.checkTouches(t, "Patch ConfigMap config replace /data/a")
}

// Nor is what the API server has refused.
func TestWhatIsRefusedIsNoForm(t *testing.T) {
	w := running(t, song("1", "1"), "")
	w.admit = immutable("spec", "fixed")
	w.respec(song("2", "2"), "")
	w.mustReconcile(t)
	w.checkNothingLearned(t)
	w.checkReason(t, application.ReconciledCondition, "Invalid")
}

// A change of one field has the API server set another one anew, which was not
// sent: that is no way to write it, and it is sent as well.
func TestAFieldThatDependsOnAnother(t *testing.T) {
	w := running(t, song("1", "1"), "")
	last := "1"
	w.answer = func(live map[string]any) {
		if free, _, _ := unstructured.NestedString(live, "spec", "free"); free != last {
			last = free
			writes("reset", "spec", "fixed")(live)
		}
	}
	w.somebody(t, "s", "Song aria", "x", "spec", "free")
	last = "x"
	w.checkPass(t, "Patch Song aria replace /spec/free", "Patch Song aria replace /spec/fixed")
	w.checkReason(t, application.ReconciledCondition, "Reconciled")
	w.checkQuiet(t)
}

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

// sized returns a song whose size is observed but not in the manifest.
func sized(fixed, free string) (manifest, observed string) {
	return song(fixed, free), `{apiVersion: example.com/v1, kind: Song, metadata: {name: aria}, spec: {fixed: null, free: null, size: null}}`
}

// learning returns an Application that has learned the size of its song.
func learning(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, song("1", "1"), "")
	w.respec(sized("1", "1"))
	w.answer = writes("5", "spec", "size")
	w.mustReconcile(t)
	w.answer = func(map[string]any) {}
	w.checkQuiet(t)
	return w
}

// If the API server refuses a spec as a whole, as for a StatefulSet, it does not refuse each
// value in it. The learned values stay on the object.
func TestARefusalOfAllIsNoneOfWhatWasLearned(t *testing.T) {
	w := learning(t)
	w.admit = func(_, after map[string]any) error {
		free, _, err := unstructured.NestedString(after, "spec", "free")
		if _, has, other := unstructured.NestedString(after, "spec", "size"); err != nil || other != nil || has && free == "2" {
			return refuse("spec")
		}
		return nil
	}
	w.respec(sized("1", "2"))
	w.checkPass(t, "Patch Song aria replace /spec/free")
	w.checkReason(t, application.ReconciledCondition, "Invalid")
}

// A webhook that writes another value each time does not fill the ConfigMap.
func TestFormsAreBounded(t *testing.T) {
	w := running(t, oneObject, "")
	w.step = 2 * time.Minute
	round := 0
	w.answer = func(live map[string]any) {
		round++
		writes(fmt.Sprint("webhook's ", round), "data", "a")(live)
	}
	for range 50 {
		w.flip(t, "somebody")
		w.mustPass(t)
	}
	if size := len(w.cm.Data[application.LearnedKey]); round < 50 || size > 1000 {
		t.Errorf("after %d writes %d bytes were learned", round, size)
	}
}

// web is a workload with one container.
const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1,
  template: {spec: {containers: [{name: main, image: "main:1"}]}}}}`

// writes returns the behaviour of an API server, or of its webhook, that always writes this
// value.
func writes(value any, path ...string) func(map[string]any) {
	return func(live map[string]any) {
		if err := unstructured.SetNestedField(live, value, path...); err != nil {
			panic(err) // a mistake of the test
		}
	}
}

// removes returns the behaviour of an API server that drops a field.
func removes(path ...string) func(map[string]any) {
	return func(live map[string]any) { unstructured.RemoveNestedField(live, path...) }
}

// write sets a value of an object as another client, and managedFields do not record it.
func (w *world) write(t testing.TB, name string, value any, path ...string) {
	t.Helper()
	w.change(t, name, func(live *unstructured.Unstructured) { writes(value, path...)(live.Object) })
}

// The manager writes this value, and managedFields record it.
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

// If the answer to a creation has other values, they are the API server's form. The form is
// reported, stored beyond this process, and no drift.
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
			[]any{map[string]any{"path": []any{"spec", "template", "spec", "containers"}, "want": int64(1), "have": []any{"sha256:8f849c399b8c9cdc690df5f1736a89f5"}}},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.manifest, "")
			w.answer = c.answer
			w.mustReconcile(t)
			w.answer = func(map[string]any) {}
			w.checkReady(t, application.StateRunning, "Ready", ready)
			w.checkCondition(t, application.ReconciledCondition, "NormalizedByServer",
				"the API server, or a webhook there, stores values in another form: "+c.object+": "+c.fields)
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

// A webhook that rewrites an observed field at every write gets one write, and then its value
// stays. Further writes would get the same answer without end.
func TestAWebhookThatRewrites(t *testing.T) {
	w := running(t, oneObject, "")
	w.answer = writes("webhook's", "data", "a")
	w.somebody(t, "somebody", "ConfigMap config", "theirs", "data", "a")
	w.checkLastPass(t, "Patch ConfigMap config replace /data/a")
	w.checkCondition(t, application.ReconciledCondition, "NormalizedByServer",
		"the API server, or a webhook there, stores values in another form: v1 ConfigMap demo/config: data.a")
	w.checkQuiet(t)
	w.checkSilentRestart(t)

	// Any other value is still drift.
	w.somebody(t, "somebody", "ConfigMap config", "other", "data", "a")
	w.checkLastPass(t, "Patch ConfigMap config replace /data/a")
	w.checkQuiet(t)
}

// A form holds for one desired value: it is forgotten together with that value.
func TestAFormOfAFormerValue(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.answer = writes("one", "data", "a")
	w.mustReconcile(t)
	w.answer = func(map[string]any) {}
	w.respec(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "2"}}`, "")
	w.checkLastPass(t, "Patch ConfigMap config replace /data/a")
	w.checkReason(t, application.ReconciledCondition, "Reconciled")
	w.checkNothingLearned(t)

	// After a return to the former value, its form is unknown.
	w.respec(oneObject, "")
	w.checkLastPass(t, "Patch ConfigMap config replace /data/a")
	w.checkSilentRestart(t)
}

// A value that a hold keeps is no form of the API server: it is repaired when the hold ends.
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
	w.checkLastPass(t, "Patch ConfigMap config replace /data/a")
}

// A change of one field makes the API server change another one, which was not sent. The new
// value is no form, so the other field is sent, too.
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

// Another replica, for example, may have learned another value.
func TestPlanKnowsWhatAnotherHasLearned(t *testing.T) {
	w := learning(t)
	app := w.app(t)
	app.Learned[0]["spec"].(map[string]any)["size"] = "6"
	check.Must(t, app.Record(w.cm))
	w.cm.ResourceVersion = w.next()
	w.checkLastPass(t, "Patch Song aria replace /spec/size")
}

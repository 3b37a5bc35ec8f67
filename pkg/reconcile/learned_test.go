package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
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

// A client that removes a learned value from a held object does not refuse it as the API
// server does. The value is restored when the hold ends.
func TestALearnedValueOfAHeldObject(t *testing.T) {
	w := learning(t)
	w.annotate(application.HoldUntilAnnotation, w.now.Add(time.Minute))
	w.change(t, "Song aria", func(live *unstructured.Unstructured) {
		live.SetLabels(nil) // causes a write
		unstructured.RemoveNestedField(live.Object, "spec", "size")
	})
	w.checkPass(t, "Patch Song aria add /metadata/labels")
	w.now = w.now.Add(time.Minute)
	w.checkPass(t, "Patch Song aria add /spec/size")
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

// A form is stored although another field is refused, and its value is sent once.
func TestAFormBesidesARefusal(t *testing.T) {
	w := learning(t)
	w.answer = func(live map[string]any) {
		if free, _, err := unstructured.NestedString(live, "spec", "free"); err == nil && free == "2" {
			writes("two", "spec", "free")(live)
		}
	}
	w.admit = immutable("spec", "fixed")
	w.respec(sized("2", "2"))
	for i, want := range [][]string{
		{"Patch Song aria replace /spec/fixed replace /spec/free", "Patch Song aria replace /spec/free"}, nil, nil,
	} {
		w.checkPass(t, want...)
		w.somebody(t, "somebody", "Song aria", fmt.Sprint(i), "spec", "unobserved")
	}
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

package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// sized is a song whose size is not the manifest's, and observed.
func sized(fixed, free string) (manifest, observed string) {
	return song(fixed, free), `{apiVersion: example.com/v1, kind: Song, metadata: {name: aria}, spec: {fixed: null, free: null, size: null}}`
}

// learning has an Application that has learned the size of its song.
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

// A learned value that somebody takes away from a held object is not one that the
// API server will not have: it is put back when its time comes.
func TestALearnedValueOfAHeldObject(t *testing.T) {
	w := learning(t)
	w.annotate(application.HoldUntilAnnotation, w.now.Add(time.Minute))
	w.change(t, "Song aria", func(live *unstructured.Unstructured) {
		live.SetLabels(nil) // so that there is something to write
		unstructured.RemoveNestedField(live.Object, "spec", "size")
	})
	w.checkPass(t, "Patch Song aria add /metadata/labels")
	w.now = w.now.Add(time.Minute)
	w.checkPass(t, "Patch Song aria add /spec/size")
}

// To refuse a spec as a whole, as the API server does for a StatefulSet, is not to
// refuse each value in it: what was learned is not taken off the object.
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

// What the API server writes otherwise is remembered although another field is
// refused, and is sent once.
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

// A webhook that never writes the same does not fill the ConfigMap.
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

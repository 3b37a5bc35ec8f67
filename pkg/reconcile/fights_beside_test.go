package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// lose takes annotations of ours from an object.
func lose(live *unstructured.Unstructured, names ...string) {
	annotations := live.GetAnnotations()
	for _, name := range names {
		delete(annotations, name)
	}
	live.SetAnnotations(annotations)
}

// Whatever somebody changes three times a second for five minutes, and whatever
// else is the matter with the object, it costs at most twenty writes.
func TestFightBesides(t *testing.T) {
	cases := []struct {
		name string
		// admit is what the API server takes from when the spec has changed.
		admit func(before, after map[string]any) error
		wins  func(t *testing.T, w *world, round int)
	}{
		{"over the proof", nil, func(t *testing.T, w *world, _ int) {
			t.Helper()
			w.change(t, "Song aria", func(live *unstructured.Unstructured) { lose(live, application.OwnerAnnotation) })
		}},
		{"over a field, while another is refused", immutable("spec", "fixed"), func(t *testing.T, w *world, round int) {
			t.Helper()
			w.somebody(t, "rival", "Song aria", fmt.Sprint("theirs ", round), "spec", "free")
		}},
		{"over the field that is refused", func(_, after map[string]any) error {
			if value, _, err := unstructured.NestedString(after, "spec", "free"); err != nil || value == "2" {
				return refuse("spec", "free")
			}
			return nil
		}, func(t *testing.T, w *world, round int) {
			t.Helper()
			w.somebody(t, "rival", "Song aria", fmt.Sprint("theirs ", round), "spec", "free")
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, song("1", "1"), "")
			if c.admit != nil {
				w.admit = c.admit
			}
			w.respec(song("2", "2"), "")
			if _, err := w.pass(t); err != nil {
				t.Fatal(err)
			}
			w.step = 300 * time.Millisecond
			round := 0
			written := w.fight(t, 5*time.Minute, func() { round++; c.wins(t, w, round) })
			if len(written) > 20 || len(written) < 5 {
				t.Errorf("%d writes", len(written))
			}
			w.checkReason(t, application.ContendedCondition, "RivalManager")
		})
	}
}

// Marks that a webhook takes off with every write are put on as rarely.
func TestMarksThatAreNotKept(t *testing.T) {
	for _, name := range []string{application.OwnerAnnotation, application.OwnerUIDAnnotation} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, oneObject, "")
			w.answer = func(live map[string]any) { lose(&unstructured.Unstructured{Object: live}, name) }
			w.step = 300 * time.Millisecond
			written := w.fight(t, 5*time.Minute, func() { w.version++ })
			if len(written) > 20 {
				t.Errorf("%d writes", len(written))
			}
		})
	}
}

// An API server that has an object, and does not, is not asked for ever.
func TestNeitherThereNorMissing(t *testing.T) {
	w := newWorld(t, oneObject, "")
	w.failures["Create ConfigMap config"] = apierrors.NewAlreadyExists(resource, "config")
	if _, err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	if len(w.touches()) > 4 {
		t.Errorf("writes to the target: %q", w.touches())
	}
	w.checkReason(t, application.ReconciledCondition, "Error")
}

// Nor is one that takes more than fits into a patch, and writes all of it otherwise.
func TestManyFieldsThatAreNotKept(t *testing.T) {
	if testing.Short() {
		t.Skip("make verify runs it: 5000 fields take seconds")
	}
	values := func(value string) (text string) {
		for i := range 5000 {
			text += fmt.Sprintf("  k%d: %q\n", i, value)
		}
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata:\n" + text
	}
	w := running(t, values("1"), "")
	w.respec(values("2"), "")
	patches := 0
	w.answer = func(live map[string]any) {
		patches++
		data, ok := live["data"].(map[string]any)
		if !ok {
			t.Fatalf("data: %v", live["data"])
		}
		for key := range data {
			data[key] = fmt.Sprint("webhook's ", patches)
		}
	}
	if _, err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	if patches > 20 {
		t.Errorf("%d patches in one pass", patches)
	}
	w.checkReason(t, application.ReconciledCondition, "Error")
}

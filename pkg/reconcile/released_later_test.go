package reconcile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// What has left the spec and could not be removed at once is removed later, also
// where the observers have looked at the object meanwhile: they do not see what is
// not observed any more.
func TestReleasedLater(t *testing.T) {
	looks := func(t *testing.T, w *world) {
		t.Helper()
		w.unread()
		if _, err := w.pass(t); err != nil {
			t.Fatal(err)
		}
		w.checkTouches(t)
		w.stale = map[string]bool{}
	}
	cases := []struct {
		name string
		set  func(t *testing.T, w *world)
	}{
		{"after a hold", func(t *testing.T, w *world) {
			t.Helper()
			w.annotate(application.HoldUntilAnnotation, noon.Add(time.Minute))
			looks(t, w)
			w.now = noon.Add(time.Minute)
		}},
		{"after a hold, by another agent", func(t *testing.T, w *world) {
			t.Helper()
			w.annotate(application.HoldUntilAnnotation, noon.Add(time.Minute))
			looks(t, w)
			w.now = noon.Add(time.Minute)
			w.restart()
		}},
		{"after it was observed for a while", func(t *testing.T, w *world) {
			t.Helper()
			w.annotate(application.ModeAnnotation, application.Observe)
			looks(t, w)
			delete(w.cm.Annotations, application.ModeAnnotation)
		}},
		{"that changed while nobody looked, and all was observed anew afterwards", func(t *testing.T, w *world) {
			t.Helper()
			w.annotate(application.ModeAnnotation, application.Suspend)
			if _, err := w.pass(t); err != nil {
				t.Fatal(err)
			}
			delete(w.cm.Annotations, application.ModeAnnotation)
		}},
		{"after a pass that failed, by another agent", func(t *testing.T, w *world) {
			t.Helper()
			w.unread()
			w.fails(t)
			w.stale = map[string]bool{}
			w.restart()
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, privileged, "")
			w.respec(plain, "")
			c.set(t, w)
			if _, err := w.pass(t); err != nil {
				t.Fatal(err)
			}
			w.checkTouches(t, release)
			w.checkReady(t, application.StateRunning, "Ready", ready)
			w.checkQuiet(t)
			w.checkSilentRestart(t)
		})
	}
}

// A spec that was replaced while it was carried out was carried out all the same:
// what it has set and its successor does not have is removed.
func TestReleasedOfASpecThatWasReplacedMeanwhile(t *testing.T) {
	w := running(t, plain, "")
	w.respec(privileged, "")
	w.unread()
	w.admit = func(_, _ map[string]any) error {
		w.respec(plain, "")
		w.admit = func(_, _ map[string]any) error { return nil }
		return nil
	}
	w.checkRequeued(t) // the status could not be written
	if _, err := w.pass(t); err != nil {
		t.Fatal(err)
	}
	w.checkTouches(t, release)
	w.stale = map[string]bool{}
	w.checkQuiet(t)
	w.checkSilentRestart(t)
}

// Of a spec that could be carried out in part only, that part is carried out: who
// takes it back, because something else in it was refused, takes all of it back.
func TestReleasedOfASpecThatWasRefusedInPart(t *testing.T) {
	const refusedInPart = `{apiVersion: example.com/v1, kind: Song, metadata: {name: aria}, spec: {fixed: "2", free: "1", extra: {a: "1"}, list: [{p: "1", q: "1"}]}}`
	for _, restarted := range []bool{false, true} {
		w := running(t, song("1", "1"), "")
		w.admit = immutable("spec", "fixed")
		w.respec(refusedInPart, "")
		w.stale["Song aria"] = true
		if _, err := w.pass(t); err != nil {
			t.Fatal(err)
		}
		w.checkReason(t, application.ReconciledCondition, "Invalid")
		if restarted {
			w.restart()
		}
		w.respec(song("1", "1"), "")
		if _, err := w.pass(t); err != nil {
			t.Fatal(err)
		}
		w.stale = map[string]bool{}
		if diff := cmp.Diff(map[string]any{"fixed": "1", "free": "1"}, w.objects["Song aria"]["spec"]); diff != "" {
			t.Errorf("spec of the object (-want +got):\n%s", diff)
		}
		w.checkReady(t, application.StateRunning, "Ready", ready)
		w.checkQuiet(t)
		w.checkSilentRestart(t)
	}
}

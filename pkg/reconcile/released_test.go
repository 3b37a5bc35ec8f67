package reconcile_test

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

const (
	privileged = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {hostNetwork: true,
		containers: [{name: main, image: "main:1", securityContext: {privileged: true}}]}}}}`
	plain = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {
		containers: [{name: main, image: "main:1"}]}}}}`
	release = "Patch Deployment web remove /spec/template/spec/containers/0/securityContext remove /spec/template/spec/hostNetwork"
)

// A user who deletes "privileged: true" from a manifest expects its removal. A field that was
// removed from the spec is removed once, if it still has our value. Failures in between do not
// prevent that.
func TestReleased(t *testing.T) {
	cases := []struct {
		name string
		set  func(t *testing.T, w *world)
		want []string
	}{
		{"at once", func(*testing.T, *world) {}, []string{release}},
		{"what somebody has changed meanwhile stays", func(t *testing.T, w *world) {
			w.somebody(t, "somebody", "Deployment web", false, "spec", "template", "spec", "hostNetwork")
		}, []string{"Patch Deployment web remove /spec/template/spec/containers/0/securityContext"}},
		{"after a pass that failed", func(t *testing.T, w *world) { w.fails(t) }, []string{release}},
		{"after a pass that failed, by another agent", func(t *testing.T, w *world) {
			w.fails(t)
			w.restart()
		}, []string{release}},
		{"not if the user wants it again meanwhile", func(t *testing.T, w *world) {
			w.fails(t)
			w.respec(privileged, "")
		}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, privileged, "")
			w.respec(plain, "")
			w.unread()
			c.set(t, w)
			w.checkPass(t, c.want...)
			w.stale = map[string]bool{}
			w.checkReady(t, application.StateRunning, "Ready", ready)
			w.checkQuiet(t)
			w.checkSilentRestart(t)

			// A client that sets it again keeps it: the field is no longer observed.
			w.somebody(t, "somebody", "Deployment web", true, "spec", "template", "spec", "hostPID")
			w.stale["Deployment web"] = true
			w.checkPass(t)
		})
	}
}

// unread makes the observation stale: the observers have not read this revision.
func (w *world) unread() { w.stale["Deployment web"] = true }

// fails runs a pass in which all writes to the target fail.
func (w *world) fails(t *testing.T) {
	t.Helper()
	w.admit = func(_, _ map[string]any) error { return apierrors.NewForbidden(resource, "web", errors.New("no")) }
	if _, err := w.pass(t); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	w.admit = func(_, _ map[string]any) error { return nil }
}

// A field that could not be removed at once is removed later. That holds even if the observers
// have read the object meanwhile, because they no longer observe the field.
func TestReleasedLater(t *testing.T) {
	looks := func(t *testing.T, w *world) {
		t.Helper()
		w.unread()
		w.checkPass(t)
		w.stale = map[string]bool{}
	}
	cases := []struct {
		name string
		set  func(t *testing.T, w *world)
	}{
		{"after a hold", func(t *testing.T, w *world) {
			w.annotate(application.HoldUntilAnnotation, noon.Add(time.Minute))
			looks(t, w)
			w.now = noon.Add(time.Minute)
		}},
		{"after it was observed for a while", func(t *testing.T, w *world) {
			w.annotate(application.ModeAnnotation, application.Observe)
			looks(t, w)
			delete(w.cm.Annotations, application.ModeAnnotation)
		}},
		{"that changed while nobody looked, and all was observed anew afterwards", func(t *testing.T, w *world) {
			w.annotate(application.ModeAnnotation, application.Suspend)
			w.mustPass(t)
			delete(w.cm.Annotations, application.ModeAnnotation)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, privileged, "")
			w.respec(plain, "")
			c.set(t, w)
			w.checkPass(t, release)
			w.checkReady(t, application.StateRunning, "Ready", ready)
			w.checkQuiet(t)
			w.checkSilentRestart(t)
		})
	}
}

// A spec that is replaced during its pass was still carried out. Fields that it has set and
// its successor lacks are removed.
func TestReleasedOfASpecThatWasReplacedMeanwhile(t *testing.T) {
	w := running(t, plain, "")
	w.respec(privileged, "")
	w.unread()
	w.admit = func(_, _ map[string]any) error {
		w.respec(plain, "")
		w.admit = func(_, _ map[string]any) error { return nil }
		return nil
	}
	w.checkRequeued(t) // the status write failed
	w.checkPass(t, release)
	w.stale = map[string]bool{}
	w.checkQuiet(t)
	w.checkSilentRestart(t)
}

// If a spec is refused in part, the remaining part is carried out. A user who withdraws such a
// spec withdraws all of that part.
func TestReleasedOfASpecThatWasRefusedInPart(t *testing.T) {
	const refusedInPart = `{apiVersion: example.com/v1, kind: Song, metadata: {name: aria}, spec: {fixed: "2", free: "1", extra: {a: "1"}, list: [{p: "1", q: "1"}]}}`
	for _, restarted := range []bool{false, true} {
		w := running(t, song("1", "1"), "")
		w.admit = immutable("spec", "fixed")
		w.respec(refusedInPart, "")
		w.stale["Song aria"] = true
		w.mustPass(t)
		w.checkReason(t, application.ReconciledCondition, "Invalid")
		if restarted {
			w.restart()
		}
		w.respec(song("1", "1"), "")
		w.mustPass(t)
		w.stale = map[string]bool{}
		check.Equal[any](t, "spec of the object", map[string]any{"fixed": "1", "free": "1"}, w.objects["Song aria"]["spec"])
		w.checkReady(t, application.StateRunning, "Ready", ready)
		w.checkQuiet(t)
		w.checkSilentRestart(t)
	}
}

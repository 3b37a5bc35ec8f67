package reconcile_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	privileged = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      hostNetwork: true
      containers:
      - {name: main, image: "main:1", securityContext: {privileged: true}}
`
	plain = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - {name: main, image: "main:1"}
`
	release = "Patch Deployment web remove /spec/template/spec/containers/0/securityContext remove /spec/template/spec/hostNetwork"
)

// Who deletes "privileged: true" from a manifest does not want it to stay: what
// left the spec is removed, once, if it is still as we have set it. Whatever
// comes between, it is not lost.
func TestReleased(t *testing.T) {
	cases := []struct {
		name string
		set  func(t *testing.T, w *world)
		want []string
	}{
		{"at once", func(*testing.T, *world) {}, []string{release}},
		{"what somebody has changed meanwhile stays", func(t *testing.T, w *world) {
			t.Helper()
			w.somebody(t, "somebody", "Deployment web", false, "spec", "template", "spec", "hostNetwork")
		}, []string{"Patch Deployment web remove /spec/template/spec/containers/0/securityContext"}},
		{"what somebody has removed is gone", func(_ *testing.T, w *world) {
			unstructured.RemoveNestedField(w.objects["Deployment web"], "spec", "template", "spec", "hostNetwork")
		}, []string{"Patch Deployment web remove /spec/template/spec/containers/0/securityContext"}},
		{"after a pass that failed", func(t *testing.T, w *world) {
			t.Helper()
			w.fails(t)
		}, []string{release}},
		{"after two of those", func(t *testing.T, w *world) {
			t.Helper()
			w.fails(t)
			w.fails(t)
		}, []string{release}},
		{"after a pass that failed, by another agent", func(t *testing.T, w *world) {
			t.Helper()
			w.fails(t)
			w.restart()
		}, []string{release}},
		{"by another agent", func(_ *testing.T, w *world) { w.restart() }, []string{release}},
		{"after a pass in which the target did not answer", func(t *testing.T, w *world) {
			t.Helper()
			w.admit = func(_, _ map[string]any) error { return apierrors.NewServiceUnavailable("not now") }
			if _, err := w.pass(t); err == nil {
				t.Error("no error")
			}
			w.admit = func(_, _ map[string]any) error { return nil }
		}, []string{release}},
		{"after a hold", func(t *testing.T, w *world) {
			t.Helper()
			w.annotate(application.HoldUntilAnnotation, noon.Add(time.Minute))
			if _, err := w.pass(t); err != nil {
				t.Fatal(err)
			}
			w.checkTouches(t)
			w.restart()
			w.now = noon.Add(time.Minute)
		}, []string{release}},
		{"after the object was not looked at for a while", func(t *testing.T, w *world) {
			t.Helper()
			w.annotate(application.ModeAnnotation, application.Suspend)
			if _, err := w.pass(t); err != nil {
				t.Fatal(err)
			}
			delete(w.cm.Annotations, application.ModeAnnotation)
		}, []string{release}},
		{"after the Application was refused for a while, though its spec was not", func(t *testing.T, w *world) {
			t.Helper()
			w.Namespaces.Allowed = []string{"another"}
			if _, err := w.pass(t); err != nil {
				t.Fatal(err)
			}
			w.Namespaces.Allowed = nil
		}, []string{release}},
		{"after it was observed for a while", func(t *testing.T, w *world) {
			t.Helper()
			w.annotate(application.ModeAnnotation, application.Observe)
			if _, err := w.pass(t); err != nil {
				t.Fatal(err)
			}
			w.checkTouches(t)
			delete(w.cm.Annotations, application.ModeAnnotation)
		}, []string{release}},
		{"not if the user wants it again meanwhile", func(t *testing.T, w *world) {
			t.Helper()
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
			if _, err := w.pass(t); err != nil {
				t.Fatal(err)
			}
			w.checkTouches(t, c.want...)
			w.stale = map[string]bool{}
			w.checkReady(t, application.StateRunning, "Ready", ready)
			w.checkQuiet(t)
			w.checkSilentRestart(t)

			// Whoever brings it back has it: it is not observed any more.
			w.somebody(t, "somebody", "Deployment web", true, "spec", "template", "spec", "hostPID")
			w.stale["Deployment web"] = true
			if _, err := w.pass(t); err != nil {
				t.Fatal(err)
			}
			w.checkTouches(t)
		})
	}
}

// unread: of another revision, the observers have not looked at it.
func (w *world) unread() { w.stale["Deployment web"] = true }

// fails is a pass in which nothing may be written to the target.
func (w *world) fails(t *testing.T) {
	t.Helper()
	w.admit = func(_, _ map[string]any) error { return apierrors.NewForbidden(resource, "web", errors.New("no")) }
	if _, err := w.pass(t); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	w.admit = func(_, _ map[string]any) error { return nil }
}

// It is removed together with what is changed, by one patch.
func TestReleasedWithAChange(t *testing.T) {
	w := running(t, privileged, "")
	w.respec(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - {name: main, image: "main:2"}
`, "")
	w.unread()
	w.mustReconcile(t)
	if len(w.touches()) != 1 {
		t.Errorf("writes to the target: %q", w.touches())
	}
	want := map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": "main:2"}},
	}}}
	if diff := cmp.Diff(want, w.objects["Deployment web"]["spec"]); diff != "" {
		t.Errorf("spec of the object (-want +got):\n%s", diff)
	}
}

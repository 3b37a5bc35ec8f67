package reconcile_test

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// An Application needs a turn for a new spec until all objects match it, and for its deletion. It does nothing until
// it has one. Repairs, and the health of objects, need none.
func TestMayBegin(t *testing.T) {
	cases := []struct {
		name  string
		set   func(t *testing.T, w *world)
		needs bool
		want  []string // the writes to the target
	}{
		{"nothing has changed", func(*testing.T, *world) {}, false, nil},
		{"drift", drift, false, []string{"Patch ConfigMap config replace /data/a"}},
		{"a deleted object", func(_ *testing.T, w *world) { w.vanish("ConfigMap config") }, false, []string{"Create ConfigMap config"}},
		{"another mode", func(_ *testing.T, w *world) { w.annotate(application.ModeAnnotation, application.Observe) }, false, nil},
		{"a new spec", func(_ *testing.T, w *world) { w.respec(twoObjects, "") }, true, []string{"Create Deployment web"}},
		{"a new spec that was refused", func(t *testing.T, w *world) {
			w.respec(twoObjects, "")
			w.failures["Create Deployment web"] = apierrors.NewInternalError(errors.New("no"))
			_, err := w.reconcile(t)
			check.Equal(t, "the failure", true, err != nil)
			delete(w.failures, "Create Deployment web")
			w.forget()
		}, true, []string{"Create Deployment web"}},
		{"a move to another cluster", func(t *testing.T, w *world) {
			here := w.objects
			w.travel(t, "edge")
			w.visit("edge", map[string]map[string]any{})
			w.mustReconcile(t)
			w.visit("local", here)
		}, true, []string{"Delete ConfigMap config"}},
		{"deletion", func(_ *testing.T, w *world) { deleted(w) }, true, []string{"Delete ConfigMap config"}},
		{"suspension", func(_ *testing.T, w *world) { w.annotate(application.ModeAnnotation, application.Suspend) }, false, nil},
		{"a restarted agent", func(_ *testing.T, w *world) { w.restart() }, false, nil},
		{"drift during a restart", func(t *testing.T, w *world) {
			w.restart()
			drift(t, w)
		}, false, []string{"Patch ConfigMap config replace /data/a"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, oneObject, "")
			c.set(t, w)
			asked, may := 0, false
			w.MayBegin = func(name types.NamespacedName) bool {
				check.Equal(t, "name", appName, name)
				asked++
				return may
			}
			w.mustReconcile(t)
			if c.needs {
				if slices.ContainsFunc(w.calls, func(call string) bool { return call != "Stop" }) {
					t.Errorf("calls without a turn: %q", w.calls)
				}
				may = true
				w.mustReconcile(t)
			}
			check.Equal(t, "asked for a turn", c.needs, asked > 0)
			w.checkTouches(t, c.want...)
		})
	}
}

package reconcile_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/check"
)

// An Application needs a turn for a new spec, as long as writes fail, and for its deletion. It does nothing until it
// has one. Repairs, the health of objects, and what only looks need none.
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
		{"a new spec", func(_ *testing.T, w *world) { w.respec(twoObjects, "") }, true, []string{"Create Deployment web"}},
		{"a new spec that was refused", func(t *testing.T, w *world) {
			w.respec(twoObjects, "")
			w.failures["Create Deployment web"] = apierrors.NewInternalError(errors.New("no"))
			w.mustFail(t)
			delete(w.failures, "Create Deployment web")
			w.forget()
		}, true, []string{"Create Deployment web"}},
		{"a move to another cluster", func(t *testing.T, w *world) {
			here := w.objects
			w.travel(t, "edge")
			w.passOn(t, "edge", map[string]map[string]any{})
			w.visit("local", here)
		}, true, []string{"Delete ConfigMap config"}},
		{"deletion", func(_ *testing.T, w *world) { deleted(w) }, true, []string{"Delete ConfigMap config"}},
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

// A shutdown needs a turn to begin. Then it goes on without one, because its deadline would pass.
func TestShutdownWaitsForNoTurn(t *testing.T) {
	w, c := stopping(t)
	c.answer = refused()
	deleted(w)
	may := false
	w.MayBegin = func(types.NamespacedName) bool { return may }
	w.mustReconcile(t)
	check.Equal(t, "calls without a turn", 0, len(c.calls))
	may = true
	w.mustPass(t)
	may = false
	w.after(t, 2*time.Second)
	check.Equal(t, "calls after it has begun", 2, len(c.calls))
}

// A user gives up on an Application that waits for its deletion, or for that on its former cluster. The Event says
// which objects stay.
func TestAbandonedWithoutATurn(t *testing.T) {
	for name, leaves := range map[string]bool{"deleted": false, "moved and deleted": true} {
		t.Run(name, func(t *testing.T) {
			w := running(t, oneObject, "")
			if leaves {
				w.travel(t, "edge")
			}
			deleted(w)
			w.MayBegin = func(types.NamespacedName) bool { return false }
			w.mustReconcile(t)
			w.cm = nil
			w.mustReconcile(t)
			w.checkReports(t, "Abandoned v1 ConfigMap demo/config")
		})
	}
}

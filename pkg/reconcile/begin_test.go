package reconcile_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// An Application needs a turn for a new spec and for its deletion, and does nothing until it has one.
// Repairs, and the health of objects, need none.
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
				w.checkCalls(t) // not even the observers
				may = true
				w.mustReconcile(t)
			}
			check.Equal(t, "asked for a turn", c.needs, asked > 0)
			w.checkTouches(t, c.want...)
		})
	}
}

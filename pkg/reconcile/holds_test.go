package reconcile_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// hold asks for a hold on the ConfigMap as a user, or for none with "".
func (w *world) hold(t *testing.T, until any) {
	t.Helper()
	w.change(t, "ConfigMap config", func(live *unstructured.Unstructured) {
		annotations := live.GetAnnotations()
		delete(annotations, application.HoldUntilAnnotation)
		if until != "" {
			annotations[application.HoldUntilAnnotation] = annotation(until)
		}
		live.SetAnnotations(annotations)
	})
}

// at advances the clock to a time, and runs a pass.
func (w *world) at(t *testing.T, at time.Time) {
	t.Helper()
	w.now, w.step = at, 0
	w.mustPass(t)
}

// A drift under a hold is recorded and not reverted until the hold ends. Then it is reverted
// automatically.
func TestHold(t *testing.T) {
	until := noon.Add(time.Hour)
	const ofAll = "HeldBack v1 ConfigMap demo/app: hold until 2026-01-02T13:00:00Z, set by anna"
	holdAll := func(w *world) {
		w.annotate(application.HoldUntilAnnotation, until)
		w.annotate(application.HeldByAnnotation, "anna")
	}
	cases := []struct {
		name    string
		hold    func(t *testing.T, w *world)
		reports []string
	}{
		{"on the Application", func(t *testing.T, w *world) {
			holdAll(w)
			drift(t, w)
		}, []string{ofAll}},
		{"on the object", func(t *testing.T, w *world) {
			w.hold(t, until)
			w.mustReconcile(t)
			drift(t, w)
		}, nil},
		{"on the object, in the very write of the drift", func(t *testing.T, w *world) {
			w.hold(t, until)
			drift(t, w)
		}, nil},
		{"on both: the later counts", func(t *testing.T, w *world) {
			holdAll(w)
			w.hold(t, until.Add(-time.Minute))
			drift(t, w)
		}, []string{ofAll}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, oneObject, "")
			c.hold(t, w)
			w.checkAfter(t, w.step, until.Sub(w.now.Add(w.step)))
			w.checkTouches(t)
			w.checkReports(t, append(c.reports,
				"DriftDetected v1 ConfigMap demo/config: data.a, changed by unknown (the removal of a field leaves no trace); left unchanged: Held")...)
			const message = "v1 ConfigMap demo/config: data.a: held until 2026-01-02T13:00:00Z"
			w.checkReconciled(t, application.StateRunning, "Held", message)
			w.checkCondition(t, application.DriftedCondition, "Held", "v1 ConfigMap demo/config: data.a")
			w.checkReason(t, application.StalledCondition, "Progressing")
			w.checkSilentRestart(t)

			w.at(t, until.Add(-time.Second))
			w.checkTouches(t)
			w.checkReports(t) // reported once
			w.at(t, until)
			w.checkTouches(t, "Patch ConfigMap config replace /data/a")
			w.checkReady(t, application.StateRunning, "Ready", ready)
			w.checkSilentRestart(t)
			if drifts := w.app(t).Status.Drifts; len(drifts) != 1 || drifts[0].Count != 1 || drifts[0].Repaired == "" || drifts[0].After.Duration < 59*time.Minute {
				t.Errorf("the history has %+v, want one drift that was reverted after about an hour", drifts)
			}
		})
	}
}

// Requests for a hold that are not valid.
func TestNoHold(t *testing.T) {
	cases := []struct {
		name string
		hold func(t *testing.T, w *world)
	}{
		{"the owner of the Application denies it", func(t *testing.T, w *world) {
			w.annotate(application.HoldAnnotation, "deny")
			w.hold(t, noon.Add(time.Hour))
		}},
		{"no time", func(t *testing.T, w *world) { w.hold(t, "tomorrow") }},
		{"a time that has passed", func(t *testing.T, w *world) { w.hold(t, noon.Add(-time.Second)) }},
		{"one of the Application that has passed", func(_ *testing.T, w *world) { w.annotate(application.HoldUntilAnnotation, noon) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, oneObject, "")
			c.hold(t, w)
			drift(t, w)
			w.checkLastPass(t, "Patch ConfigMap config replace /data/a")
		})
	}
	t.Run("but what the owner denies others, the Application may have", func(t *testing.T) {
		w := running(t, oneObject, "")
		w.annotate(application.HoldAnnotation, "deny")
		w.annotate(application.HoldUntilAnnotation, noon.Add(time.Hour))
		drift(t, w)
		w.checkPass(t)
	})
}

// A hold on an object lasts at most four hours from its first observation. One renewal extends
// it to at most four hours from the renewal. Without these limits, every user who may write
// the object could stop repairs for ever.
func TestHoldsAreLimited(t *testing.T) {
	const limit = 4 * time.Hour
	type step struct {
		at    time.Duration
		asks  any // the hold since the beginning, "" to end it, nil for no change
		until time.Duration
	}
	cases := []struct {
		name  string
		steps []step
	}{
		{"as long as is asked", []step{{0, time.Hour, time.Hour}, {time.Hour, nil, 0}}},
		{"four hours at most", []step{{0, 100 * time.Hour, limit}, {limit - time.Second, nil, limit}, {limit, nil, 0}, {50 * time.Hour, nil, 0}}},
		{"one renewal", []step{{0, 3 * time.Hour, 3 * time.Hour}, {2 * time.Hour, 5 * time.Hour, 5 * time.Hour}, {5 * time.Hour, nil, 0}}},
		{"the renewal is limited as well", []step{{0, 4 * time.Hour, limit}, {2 * time.Hour, 100 * time.Hour, 6 * time.Hour}, {6 * time.Hour, nil, 0}}},
		{"a second one is none", []step{{0, time.Hour, time.Hour}, {time.Minute, 2 * time.Hour, 2 * time.Hour}, {time.Hour, 3 * time.Hour, 2 * time.Hour}, {2 * time.Hour, nil, 0}}},
		{"but makes it shorter", []step{{0, time.Hour, time.Hour}, {time.Minute, 3 * time.Hour, 3 * time.Hour}, {time.Hour, 2 * time.Hour, 2 * time.Hour}, {2 * time.Hour, nil, 0}}},
		{"to take it off ends it", []step{{0, time.Hour, time.Hour}, {time.Minute, "", 0}}},
		{"to take it off and put it back is no renewal", []step{
			{0, 4 * time.Hour, limit}, {time.Hour, "", 0}, {2 * time.Hour, 4 * time.Hour, limit}, {limit, nil, 0},
		}},
		{"nor is there another one after that", []step{
			{0, time.Hour, time.Hour}, {time.Minute, 2 * time.Hour, 2 * time.Hour}, {time.Hour, "", 0}, {70 * time.Minute, 4 * time.Hour, 2 * time.Hour},
		}},
		{"what cannot be read ends nothing and begins nothing", []step{{0, "soon", 0}, {time.Minute, time.Hour, time.Hour}, {2 * time.Minute, "later", time.Hour}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, oneObject, "")
			begin := w.now.Add(time.Minute)
			for _, s := range c.steps {
				switch asks := s.asks.(type) {
				case time.Duration:
					w.hold(t, begin.Add(asks))
				case string:
					w.hold(t, asks)
				}
				drift(t, w)
				w.now, w.step = begin.Add(s.at), 0
				due := w.mustPass(t)
				if s.until == 0 {
					w.checkTouches(t, "Patch ConfigMap config replace /data/a")
					continue
				}
				w.checkTouches(t)
				check.Equal(t, "held until, after "+s.at.String(), s.until, s.at+due)
				w.restart() // a new agent keeps the limit
			}
		})
	}
}

// A hold covers an object's fields, not its existence: a deleted object is created again.
func TestAHeldObjectDisappears(t *testing.T) {
	w := running(t, oneObject, "")
	w.annotate(application.HoldUntilAnnotation, noon.Add(time.Hour))
	w.vanish("ConfigMap config")
	w.checkLastPass(t, "Create ConfigMap config")
	w.checkReports(t, "HeldBack v1 ConfigMap demo/app: hold until 2026-01-02T13:00:00Z, set by an unknown user",
		"Recreated v1 ConfigMap demo/config, in 12ms")
}

// The marks of a held object are restored. Without its label the agent could not find it, and
// without its proof it would have no owner.
func TestMarksOfAHeldObject(t *testing.T) {
	w := running(t, oneObject, "")
	w.hold(t, noon.Add(time.Hour))
	drift(t, w)
	w.change(t, "ConfigMap config", func(live *unstructured.Unstructured) { live.SetLabels(nil) })
	w.checkPass(t, "Patch ConfigMap config add /metadata/labels")
	w.checkReason(t, application.DriftedCondition, "Held")
	check.Equal[any](t, "data", map[string]any{"a": secret}, w.objects["ConfigMap config"]["data"])
	w.checkSilentRestart(t)
}

// A spec that changes during a hold is carried out when the hold ends.
func TestAHeldUpdate(t *testing.T) {
	w := running(t, oneObject, "")
	w.annotate(application.HoldUntilAnnotation, noon.Add(time.Hour))
	w.respec(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "2"}}`, "")
	w.checkPass(t)
	w.checkReason(t, application.ReconciledCondition, "Held")
	w.at(t, noon.Add(time.Hour))
	w.checkTouches(t, "Patch ConfigMap config replace /data/a")
}

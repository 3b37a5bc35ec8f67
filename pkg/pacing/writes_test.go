package pacing

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// A change of the state waits no longer than one of a condition: where nothing may be
// written, an Application is drifted before and after.
func TestWhenAStatusIsDue(t *testing.T) {
	status := func(state application.State, reason string) application.Status {
		return application.Status{State: state, Conditions: []metav1.Condition{{Type: application.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason}}}
	}
	w, now := &StatusWrites{}, time.Unix(1_000_000, 0)
	for range 4 { // always something to write
		w.RecordWrite(status(application.StateRunning, "Drifted"), now)
		now = now.Add(w.interval)
	}
	w.RecordWrite(status(application.StateRunning, "Drifted"), now)
	for what, row := range map[string]struct {
		status application.Status
		want   time.Duration
	}{
		"nothing that people wait for":    {status(application.StateRunning, "Drifted"), mostInterval - leastInterval},
		"another state":                   {status(application.StateDegraded, "Drifted"), 0},
		"another reason of the condition": {status(application.StateRunning, "Contended"), 0},
	} {
		if got := w.Delay(row.status, now.Add(leastInterval)); got != row.want {
			t.Errorf("%s is due in %s, want %s", what, got, row.want)
		}
	}
}

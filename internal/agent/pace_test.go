package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// In a storm there are as many Events as the server can bear; one Application does not
// take those of the others; and afterwards all is as before.
func TestPace(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := newPace()
	count := func(app string, now time.Time, tries int) (written int) {
		for range tries {
			if p.may(types.NamespacedName{Name: app}, now) {
				written++
			}
		}
		return written
	}
	for _, c := range []struct {
		app   string
		after time.Duration
		want  int
	}{
		{"a", 0, eventsOfOneAtOnce},
		{"a", time.Second, eventsOfOne},
		{"b", time.Second, eventsOfOneAtOnce},
		{"c", time.Second, eventsOfAllAtOnce + eventsOfAll - 2*eventsOfOneAtOnce - eventsOfOne},
		{"d", 2 * time.Second, eventsOfAll},
		{"a", time.Hour, eventsOfOneAtOnce},
	} {
		if got := count(c.app, start.Add(c.after), 1000); got != c.want {
			t.Errorf("%s after %s: %d Events, want %d", c.app, c.after, got, c.want)
		}
	}
	for i := range 10 * manyPaces {
		count(fmt.Sprint(i), start.Add(time.Duration(i)*time.Hour), 1)
	}
	if len(p.of) > manyPaces {
		t.Errorf("%d Applications are kept, want %d at most", len(p.of), manyPaces)
	}
}

// What is left out is counted; and what somebody has to do something about is always told.
func TestReportKeepsPace(t *testing.T) {
	app := &application.Application{NamespacedName: appName, UID: "1"}
	for _, c := range []struct {
		outcome reconcile.Outcome
		paced   bool
	}{
		{reconcile.Outcome{Action: reconcile.Reverted}, true},
		{reconcile.Outcome{Action: reconcile.Recreated}, true},
		{reconcile.Outcome{Action: reconcile.Detected, Reason: "Observed"}, true},
		{reconcile.Outcome{Action: reconcile.Detected, Reason: "Held"}, true},
		{reconcile.Outcome{Action: reconcile.Detected, Reason: "Contended"}, false},
		{reconcile.Outcome{Action: reconcile.Detected, Reason: "Invalid"}, false},
		{reconcile.Outcome{Action: reconcile.Contended}, false},
		{reconcile.Outcome{Action: reconcile.Failed}, false},
		{reconcile.Outcome{Action: reconcile.Created}, false},
		{reconcile.Outcome{Action: reconcile.Deleted}, false},
	} {
		var hub, target recorder
		counts := newMetrics()
		r := newReporter(&hub, &target, log.Log, counts, func() time.Time { return time.Unix(0, 0) })
		const many = 3 * eventsOfOneAtOnce
		for range many {
			r.report(app, c.outcome)
		}
		if got := len(hub.events); (got < many) != c.paced || got < eventsOfOneAtOnce || got != len(target.events) {
			t.Errorf("%s %s: %d of %d are told on the hub, and %d on the target", c.outcome.Action, c.outcome.Reason, got, many, len(target.events))
		}
		want := fmt.Sprintf("krake_events_unwritten_total %d\n", 2*many-len(hub.events)-len(target.events))
		if text := scrape(t, exposed(t, counts)); !strings.Contains(text, want) {
			t.Errorf("%s %s: there is no %s", c.outcome.Action, c.outcome.Reason, want)
		}
	}
}

package telemetry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// In a storm, the rate of Events is limited to what the server can bear. An Application does
// not use the share of others. Afterwards the former rate is available again.
func TestPace(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := newPace()
	count := func(app string, now time.Time, tries int) (written int, last time.Duration) {
		for range tries {
			if long, may := p.reserve(types.NamespacedName{Name: app}, now); may {
				written, last = written+1, long
			}
		}
		return written, last
	}
	const waiting = eventsOfAll * int(longestEventWait/time.Second)
	for _, c := range []struct {
		app   string
		after time.Duration
		want  int
		last  time.Duration
	}{
		{"a", 0, eventsOfOneAtOnce, (eventsOfOneAtOnce - eventsOfAllAtOnce) * time.Second / eventsOfAll},
		{"a", time.Second, eventsOfOne, 8200 * time.Millisecond},
		{"b", time.Second, eventsOfOneAtOnce, 18200 * time.Millisecond},
		{"c", time.Second, waiting + eventsOfAllAtOnce + eventsOfAll - 2*eventsOfOneAtOnce - eventsOfOne, longestEventWait},
		{"d", 2 * time.Second, eventsOfAll, longestEventWait},
		{"a", time.Hour, eventsOfOneAtOnce, (eventsOfOneAtOnce - eventsOfAllAtOnce) * time.Second / eventsOfAll},
	} {
		if got, last := count(c.app, start.Add(c.after), 1000); got != c.want || last.Round(time.Millisecond) != c.last {
			t.Errorf("%s after %s: %d Events, the last after %s, want %d and %s", c.app, c.after, got, last, c.want, c.last)
		}
	}
	for i := range 10 * manyPaces {
		count(fmt.Sprint(i), start.Add(time.Duration(i)*time.Hour), 1)
	}
	if len(p.of) > manyPaces {
		t.Errorf("%d Applications are kept, want %d at most", len(p.of), manyPaces)
	}
}

// Omitted Events are counted. Events that require an action of a user are always sent.
func TestReportKeepsPace(t *testing.T) {
	app := &application.Application{NamespacedName: appName, UID: "1"}
	for _, c := range []struct {
		outcome status.Outcome
		paced   bool
	}{
		{status.Outcome{Action: status.Reverted}, true},
		{status.Outcome{Action: status.Recreated}, true},
		{status.Outcome{Action: status.Detected, Reason: "ObserveMode"}, true},
		{status.Outcome{Action: status.Detected, Reason: "Held"}, true},
		{status.Outcome{Action: status.Detected, Reason: "Contended"}, false},
		{status.Outcome{Action: status.Detected, Reason: "Invalid"}, false},
		{status.Outcome{Action: status.FoughtAbout}, false},
		{status.Outcome{Action: status.RepairFailed}, false},
		{status.Outcome{Action: status.Created}, false},
		{status.Outcome{Action: status.Deleted}, false},
	} {
		var hub, target recorder
		counts := NewMetrics()
		r := NewReporter(&hub, &target, log.Log, counts, func() time.Time { return time.Unix(0, 0) })
		var waited []func()
		r.after = func(_ time.Duration, do func()) { waited = append(waited, do) }
		const many = 3 * eventsOfOneAtOnce
		for range many {
			r.Report(app, c.outcome)
		}
		if got := len(hub.events); c.paced && got != eventsOfAllAtOnce {
			t.Errorf("%s %s: %d are told at once", c.outcome.Action, c.outcome.Reason, got)
		}
		for _, do := range waited {
			do()
		}
		if got := len(hub.events); (got < many) != c.paced || got < eventsOfOneAtOnce || got != len(target.events) {
			t.Errorf("%s %s: %d of %d are told on the hub, and %d on the target", c.outcome.Action, c.outcome.Reason, got, many, len(target.events))
		}
		want := fmt.Sprintf("krake_events_dropped_total %d\n", 2*many-len(hub.events)-len(target.events))
		if text := scrape(t, exposed(t, counts)); !strings.Contains(text, want) {
			t.Errorf("%s %s: there is no %s", c.outcome.Action, c.outcome.Reason, want)
		}
	}
}

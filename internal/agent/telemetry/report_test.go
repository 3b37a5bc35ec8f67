package telemetry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

var appName = types.NamespacedName{Namespace: "demo", Name: "app"}

type told struct {
	Regarding, Related corev1.ObjectReference
	Text               string
}

type recorder struct{ events []told }

func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, _, _ string, arguments ...any) {
	event := told{Text: strings.Join([]string{eventType, reason, fmt.Sprint(arguments...)}, " ")}
	if one, ok := regarding.(*corev1.ObjectReference); ok {
		event.Regarding = *one
	}
	if other, ok := related.(*corev1.ObjectReference); ok {
		event.Related = *other
	}
	r.events = append(r.events, event)
}

// report returns the Events of an outcome: first those on the hub, then those on the target.
func report(outcome status.Outcome) []told {
	app := &application.Application{NamespacedName: appName, UID: "1"}
	var hub, target recorder
	NewReporter(&hub, &target, log.Log, NewMetrics(), time.Now).Report(app, outcome)
	return append(hub.events, target.events...)
}

// Events report each action. An action that should not have been necessary, or that was not
// possible, is a warning.
func TestReport(t *testing.T) {
	object := manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "web"}
	for action, want := range map[status.Action]string{
		status.Created:         "Normal Created",
		status.Configured:      "Normal Configured",
		status.Deleted:         "Normal Deleted",
		status.Adopted:         "Normal Adopted",
		status.Orphaned:        "Normal Orphaned",
		"HoldStarted":          "Normal HoldStarted",
		"HoldEnded":            "Normal HoldEnded",
		status.Recreated:       "Warning Recreated",
		status.Reverted:        "Warning DriftReverted",
		status.Detected:        "Warning DriftDetected",
		status.ContentionBegan: "Warning Contended",
		status.Conflicted:      "Warning Conflict",
	} {
		outcome := status.Outcome{Action: action, Object: object}
		for _, event := range report(outcome) {
			check.Equal(t, "event", want+" "+outcome.String(), event.Text)
		}
	}
}

// Each action has an Event at the Application, on the hub, and one at the object, on the
// target. Each names the other object.
func TestReportOnBoth(t *testing.T) {
	deployment := status.Outcome{
		Action: status.Reverted,
		Object: manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"},
		Paths:  []schema.Path{{{Field: "spec", Index: -1}, {Field: "replicas", Index: -1}}},
	}
	events := report(deployment)
	app := corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "demo", Name: "app", UID: "1"}
	object := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web", FieldPath: "spec.replicas"}
	text := "Warning DriftReverted " + deployment.String()
	check.Equal(t, "events", []told{{app, object, text}, {object, app, text}}, events)
	var many []schema.Path
	for range 1000 {
		many = append(many, deployment.Paths[0])
	}
	deployment.Paths = many
	for _, event := range report(deployment) {
		if _, note, _ := strings.Cut(event.Text, "DriftReverted "); len(note) > 1024 {
			t.Errorf("a note of %d bytes, of which the API server takes 1024", len(note))
		}
	}
}

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
		{status.Outcome{Action: status.ContentionBegan}, false},
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

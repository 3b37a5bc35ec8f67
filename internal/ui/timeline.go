package ui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// zoom is how far back a timeline reaches.
type zoom struct {
	Name string
	long time.Duration
}

// zooms are the choices. The first one reaches as far as there are entries.
var zooms = []zoom{{"all", 0}, {"5m", 5 * time.Minute}, {"1h", time.Hour}, {"6h", 6 * time.Hour}, {"1d", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour}, {"90d", 90 * 24 * time.Hour}}

// timeline has a lane for each object.
type timeline struct {
	Application types.NamespacedName
	// Zoom is the name of the chosen one.
	Zoom      string
	From, now time.Time
	Lanes     []*lane
}

type lane struct {
	Name  string
	Spans []span
}

// span is a part of a lane, in thousandths of its width.
type span struct {
	Kind, Summary string
	// Anchor is the record of a drift, empty for holds and contention.
	Anchor      string
	From, Width int
}

const (
	laneWidth = 1000
	leastSpan = 4
)

// Width is that of a lane.
func (t timeline) Width() int { return laneWidth }

// Zooms are those that users can choose.
func (t timeline) Zooms() []zoom { return zooms }

// zoomed returns the timeline for the name of a zoom.
func zoomed(app Application, name string, now time.Time) timeline {
	chosen := zooms[max(slices.IndexFunc(zooms, func(z zoom) bool { return z.Name == name }), 0)]
	t := timelineOf(app, now.Add(-cmp.Or(chosen.long, longEnough(app, now))), now)
	t.Zoom = chosen.Name
	return t
}

// timelineOf places what happened between a time and now. An open end reaches to now.
func timelineOf(app Application, from, now time.Time) timeline {
	t := timeline{Application: app.NamespacedName, From: from, now: now}
	for _, object := range app.Objects {
		t.lane(object.Title)
	}
	for _, bar := range app.Bars {
		t.add(bar.Lane, bar.From, bar.To, span{Kind: bar.Kind, Summary: bar.Summary})
	}
	for i, drift := range slices.Backward(app.Drifts) { // the newest is on top of the others
		kind := "drift"
		if drift.Repaired.IsZero() {
			kind = "open"
		}
		t.add(drift.Lane, drift.Seen, drift.Repaired, span{Kind: kind, Summary: drift.Summary, Anchor: driftID(i)})
	}
	return t
}

func driftID(i int) string { return fmt.Sprintf("drift-%d", i) }

// lane returns the lane of an object.
func (t *timeline) lane(name string) *lane {
	at := slices.IndexFunc(t.Lanes, func(l *lane) bool { return l.Name == name })
	if at < 0 {
		at = len(t.Lanes)
		t.Lanes = append(t.Lanes, &lane{Name: name})
	}
	return t.Lanes[at]
}

func (t *timeline) add(name string, from, to time.Time, s span) {
	l := t.lane(name)
	if to.IsZero() || to.After(t.now) {
		to = t.now
	}
	if to.Before(t.From) {
		return
	}
	s.From = t.place(from)
	s.Width = max(t.place(to)-s.From, leastSpan)
	s.From = min(s.From, laneWidth-s.Width)
	l.Spans = append(l.Spans, s)
}

// place returns where a time is, within the lane.
func (t timeline) place(at time.Time) int {
	whole := t.now.Sub(t.From)
	if whole <= 0 || at.Before(t.From) {
		return 0
	}
	return min(int(laneWidth*(at.Sub(t.From).Seconds()/whole.Seconds())), laneWidth) // whole numbers overflow after 106 days
}

// longEnough returns how far back the oldest entry is, and a little more.
func longEnough(app Application, now time.Time) time.Duration {
	oldest := now
	for _, drift := range app.Drifts {
		oldest = earlier(oldest, drift.Seen)
	}
	for _, bar := range app.Bars {
		oldest = earlier(oldest, bar.From)
	}
	return max(now.Sub(oldest)*21/20, time.Minute)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

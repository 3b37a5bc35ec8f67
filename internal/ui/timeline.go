package ui

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// zooms are how far back a timeline reaches. The default, "all", reaches as far as there are entries.
var zooms = []struct {
	name string
	long time.Duration
}{{"all", 0}, {"5m", 5 * time.Minute}, {"1h", time.Hour}, {"6h", 6 * time.Hour}, {"1d", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour}, {"90d", 90 * 24 * time.Hour}}

// span is a part of a lane, in thousandths of its width.
type span struct {
	kind, summary, anchor string
	from, width           int
}

// timeline has a lane for each object.
type timeline struct {
	from, now time.Time
	lanes     []string
	spans     map[string][]span
}

const (
	laneWidth = 1000
	leastSpan = 4
)

// timelineOf places what happened between a time and now. An open end reaches to now.
func timelineOf(app Application, from, now time.Time) timeline {
	t := timeline{from: from, now: now, spans: map[string][]span{}}
	for _, object := range app.Objects {
		t.lane(object.Title)
	}
	for _, bar := range app.Bars {
		t.add(bar.Lane, bar.From, bar.To, span{kind: bar.Kind, summary: bar.Summary})
	}
	for i, drift := range slices.Backward(app.Drifts) { // the newest is on top of the others
		kind := "drift"
		if drift.Repaired.IsZero() {
			kind = "open"
		}
		t.add(drift.Lane, drift.Seen, drift.Repaired, span{kind: kind, summary: drift.Summary, anchor: driftID(i)})
	}
	return t
}

func driftID(i int) string { return fmt.Sprintf("drift-%d", i) }

func (t *timeline) lane(name string) {
	if !slices.Contains(t.lanes, name) {
		t.lanes = append(t.lanes, name)
	}
}

func (t *timeline) add(lane string, from, to time.Time, s span) {
	t.lane(lane)
	if to.IsZero() || to.After(t.now) {
		to = t.now
	}
	if to.Before(t.from) {
		return
	}
	s.summary = application.Cut(s.summary, longestCell)
	s.from = t.place(from)
	s.width = max(t.place(to)-s.from, leastSpan)
	s.from = min(s.from, laneWidth-s.width)
	t.spans[lane] = append(t.spans[lane], s)
}

// place returns where a time is, within the lane.
func (t timeline) place(at time.Time) int {
	whole := t.now.Sub(t.from)
	if whole <= 0 || at.Before(t.from) {
		return 0
	}
	return min(int(laneWidth*(at.Sub(t.from).Seconds()/whole.Seconds())), laneWidth) // whole numbers overflow after 106 days
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

// timelineNode shows the timeline with its zooms. The query selects the zoom.
func timelineNode(app Application, query url.Values, now time.Time) node {
	chosen, long := zooms[0].name, longEnough(app, now)
	for _, zoom := range zooms[1:] {
		if query.Get("zoom") == zoom.name {
			chosen, long = zoom.name, zoom.long
		}
	}
	t := timelineOf(app, now.Add(-long), now)
	links := make(all, 0, len(zooms))
	for _, zoom := range zooms {
		q := queryOf(app.NamespacedName)
		q.Set("zoom", zoom.name)
		links = append(links, el("a", at("href", "/application?"+q.Encode()), when(zoom.name == chosen, at("aria-current", "true")), text(zoom.name)))
	}
	return el("section", at("aria-labelledby", "timeline-title"), class("timeline"),
		el("h2", id("timeline-title"), text("Timeline")),
		el("nav", at("aria-label", "Zoom"), class("zoom"), links),
		el("table", el("tbody", each(t.lanes, t.laneNode))),
		el("p", class("axis"), el("span", text(t.from.UTC().Format("2006-01-02 15:04:05 UTC"))), el("span", text("now"))),
		el("p", class("legend"),
			el("span", class("key drift"), text("drift, until it was repaired")), el("span", class("key open"), text("drift, not repaired")),
			el("span", class("key hold"), text("held")), el("span", class("key fight"), text("fight"))))
}

func (t timeline) laneNode(name string) node {
	spans := t.spans[name]
	return el("tr", el("th", at("scope", "row"), text(application.Cut(name, longestCell))),
		el("td", el("svg", at("viewBox", fmt.Sprintf("0 0 %d 24", laneWidth)), at("preserveAspectRatio", "none"), at("role", "group"), at("aria-label", name+": "+plural(len(spans), "entry")),
			el("path", class("base"), at("d", fmt.Sprintf("M0 12h%d", laneWidth))),
			each(spans, span.node))))
}

func (s span) node() node {
	y, height := "7", "10"
	if s.anchor == "" { // behind the drifts in its time
		y, height = "1", "22"
	}
	shape := el("rect", class(s.kind), at("x", fmt.Sprint(s.from)), at("y", y), at("width", fmt.Sprint(s.width)), at("height", height), el("title", text(s.summary)))
	if s.anchor == "" {
		return el("g", at("role", "img"), at("aria-label", s.summary), shape)
	}
	return el("a", at("href", "#"+s.anchor), at("aria-label", s.summary), shape)
}

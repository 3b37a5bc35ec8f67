package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/krake-observer/krake-observer/test/check"
)

func before(d time.Duration) time.Time { return noon.Add(-d) }

// spansOf returns where the drifts and bars are in the last thousand seconds: a unit is a second.
func spansOf(app Application) []span {
	var found []span
	made := timelineOf(app, before(laneWidth*time.Second), noon)
	for _, span := range made.lane("web").Spans {
		span.Anchor, span.Summary = "", ""
		found = append(found, span)
	}
	return found
}

func TestSpansHaveTheirPlaces(t *testing.T) {
	drift := func(seen, repaired time.Duration) Application {
		d := Drift{Lane: "web", Seen: before(seen)}
		if repaired >= 0 {
			d.Repaired = before(repaired)
		}
		return Application{Drifts: []Drift{d}}
	}
	bar := func(from, to time.Time) Application {
		return Application{Bars: []Bar{{Lane: "web", Kind: "hold", From: from, To: to}}}
	}
	for why, c := range map[string]struct {
		app  Application
		want []span
	}{
		"in the middle":                   {drift(600*time.Second, 500*time.Second), []span{{Kind: "drift", From: 400, Width: 100}}},
		"an open end reaches now":         {drift(600*time.Second, -1), []span{{Kind: "open", From: 400, Width: 600}}},
		"a moment now is within the lane": {drift(0, 0), []span{{Kind: "drift", From: laneWidth - leastSpan, Width: leastSpan}}},
		"it began before the window":      {drift(5000*time.Second, 900*time.Second), []span{{Kind: "drift", From: 0, Width: 100}}},
		"it is older than the window":     {drift(5000*time.Second, 1001*time.Second), nil},
		"it is open, and older":           {drift(5000*time.Second, -1), []span{{Kind: "open", From: 0, Width: laneWidth}}},
		"a clock is ahead":                {drift(-time.Hour, -1), []span{{Kind: "open", From: laneWidth - leastSpan, Width: leastSpan}}},
		"a hold ends in the future":       {bar(before(100*time.Second), noon.Add(time.Hour)), []span{{Kind: "hold", From: 900, Width: 100}}},
		"a hold without a begin":          {bar(time.Time{}, noon), []span{{Kind: "hold", From: 0, Width: laneWidth}}},
	} {
		check.Equal(t, why, c.want, spansOf(c.app))
	}
}

// Without a zoom, the timeline has all entries, and not much more.
func TestTheTimelineShowsAllEntries(t *testing.T) {
	const day = 24 * time.Hour
	for _, age := range []time.Duration{0, time.Second, time.Minute, time.Hour, day, 90 * day, 107 * day, 365 * day, 10 * 365 * day} {
		for why, app := range map[string]Application{
			"drift": {Drifts: []Drift{{Lane: "web", Seen: before(age), Repaired: before(age)}, {Lane: "web", Seen: before(age / 2)}}},
			"hold":  {Bars: []Bar{{Lane: "web", From: before(age), To: noon}}},
		} {
			long := longEnough(app, noon)
			if least := max(age, time.Minute); long < age || long > least+least/10 {
				t.Errorf("%s %v ago: the timeline has %v", why, age, long)
			}
			made := timelineOf(app, noon.Add(-long), noon)
			oldest := slices.MinFunc(made.lane("web").Spans, func(a, b span) int { return a.From - b.From })
			if age >= time.Hour && oldest.From > laneWidth/10 {
				t.Errorf("%s %v ago: it begins at %d", why, age, oldest.From)
			}
		}
	}
	check.Equal(t, "without an entry", time.Minute, longEnough(Application{}, noon))
	// A time that is missing in the status is no time.
	if long := longEnough(Application{Drifts: []Drift{{Lane: "web"}}}, noon); long < 0 {
		t.Errorf("a drift without a time: %v", long)
	}
}

// Each lane has a row, those of the objects first, and each span leads to its record.
func TestTheTimelineHasALaneForEachObject(t *testing.T) {
	app := Application{
		Objects: []ObjectRow{{Title: "Service/web"}, {Title: "Deployment/web"}, {Title: "Service/web"}},
		Drifts:  []Drift{{Lane: "Secret/old", Seen: before(time.Minute), Summary: "the newest"}, {Lane: "Deployment/web", Seen: before(time.Hour), Summary: "older"}},
		Bars:    []Bar{{Lane: "Deployment/web", Kind: "fight", From: before(time.Hour)}},
	}
	page := newServer(&fake{}).render("timeline", zoomed(app, "7d", noon))
	for _, want := range []string{
		`href="#drift-0" aria-label="the newest"`, `href="#drift-1" aria-label="older"`, "Service/web: 0 entries", "Deployment/web: 2 entries", "Secret/old: 1 entry",
		"2025-12-26 12:00:00 UTC",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

// The chosen zoom is marked. One that there is not is the first.
func TestTheChosenZoomIsMarked(t *testing.T) {
	for zoom, want := range map[string]string{"": "all", "1h": "1h", "90d": "90d", "1y": "all", script: "all"} {
		root, err := html.Parse(strings.NewReader(newServer(&fake{}).render("timeline", zoomed(Application{}, zoom, noon))))
		check.Must(t, err)
		var marked []string
		for n := range root.Descendants() {
			if attributeOf(n, "aria-current") == "true" {
				marked = append(marked, n.FirstChild.Data)
			}
		}
		check.Equal(t, "zoom "+zoom, []string{want}, marked)
	}
}

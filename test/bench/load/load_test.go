package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// flagged parses the options of a command line.
func flagged(t *testing.T, arguments ...string) Options {
	t.Helper()
	var o Options
	flags := pflag.NewFlagSet("load", pflag.ContinueOnError)
	o.AddFlags(flags)
	kit.Must(t, flags.Parse(arguments))
	return o
}

// The smallest size of the main scenario, on a real API server: on any machine, each
// drift is repaired by one request and causes two events, and nothing else changes.
func TestQuick(t *testing.T) {
	to := filepath.Join(t.TempDir(), "load.json")
	plots := t.TempDir()
	options := flagged(t, "--quick", "--scenarios", "drift", "--kinds", "configmap", "--contenders", ours, "--sizes", "20", "--json", to, "--plots", plots)
	kit.Must(t, options.Complete())
	var out, log strings.Builder
	if err := run(t.Context(), options, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	text, err := os.ReadFile(to)
	kit.Must(t, err)
	var r report
	kit.Must(t, json.Unmarshal(text, &r))
	if len(r.Comparisons) != 2 {
		t.Fatalf("%d comparisons, want one at a time and eight:\n%s", len(r.Comparisons), out.String())
	}
	for _, c := range r.Comparisons {
		if len(c.Rounds) != 1 {
			t.Fatalf("%s: %d rounds, want 1", c, len(c.Rounds))
		}
		for _, s := range []sample{c.Rounds[0].Before, c.Rounds[0].Subject, c.Rounds[0].After} {
			checkSample(t, c, s)
		}
	}
	for _, want := range []string{"drift.svg", "p99.svg", "repairs.svg"} {
		if text, err := os.ReadFile(filepath.Join(plots, want)); err != nil || !strings.Contains(string(text), ours+": ") {
			t.Errorf("%s: %v\n%s", want, err, text)
		}
	}
}

func checkSample(t *testing.T, about comparison, s sample) {
	t.Helper()
	want := map[string]float64{strayed: 0, relapsed: 0, unrepaired: 0, eventsEach: 2, requestsEach: 1}
	for name, count := range want {
		if got, ok := s.Values[name]; !ok || math.Abs(got-count) > 0.02 {
			t.Errorf("%s: %s: %s: %g, want %g", about, s.Contender, name, got, count)
		}
	}
	for _, name := range []string{p50, p90, p99, rate, drifts, resident} {
		if s.Values[name] <= 0 {
			t.Errorf("%s: %s: %s is missing", about, s.Contender, name)
		}
	}
}

func valued(metric string, value, foreign float64) sample {
	return sample{Values: map[string]float64{metric: value}, Foreign: foreign}
}

// A ratio counts only if the machine was the same before and after, and had no other
// load.
func TestNewRound(t *testing.T) {
	for _, c := range []struct {
		why                               string
		before, after, foreign, wantRatio float64
		want                              []string
	}{
		{"two equal floors", 2, 2, 0, 1.5, nil},
		{"two that differ by a quarter", 2, 2.5, 0.2, 3 / 2.25, nil},
		{"two that differ by more", 2, 2.6, 0, 3 / 2.3, []string{"the two of  are 30 % apart"}},
		{"somebody else", 2, 2, 0.21, 1.5, []string{"foreign CPU 21 % of a core"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			got := newRound(valued(p50, c.before, 0), valued(p50, 3, c.foreign), valued(p50, c.after, 0), p50)
			if diff := cmp.Diff(c.want, got.Discarded); diff != "" || math.Abs(got.Ratio-c.wantRatio) > 1e-9 {
				t.Errorf("ratio %g, want %g (-want +got):\n%s", got.Ratio, c.wantRatio, diff)
			}
		})
	}
}

// The verdict is the median of the rounds that count. Of two in the middle, the worse is shown.
func TestTypical(t *testing.T) {
	rounds := []round{newRound(valued(p50, 2, 0), valued(p50, 2, 0.5), valued(p50, 2, 0), p50)}
	for _, value := range []float64{2.8, 2.4, 2.2, 2.6} {
		rounds = append(rounds, newRound(valued(p50, 2, 0), valued(p50, value, 0), valued(p50, 2, 0), p50))
	}
	c := comparison{Metric: p50, Rounds: rounds}
	if ratio := c.typical().Ratio; ratio != 1.3 {
		t.Errorf("the typical ratio is %g", ratio)
	}
	if kept, counts := c.kept(); len(kept) != 4 || !counts {
		t.Errorf("%d rounds count, %t", len(kept), counts)
	}
	check.Equal(t, "verdict", "**1.25** (1.10 to 1.40), 4 of 5 rounds", c.verdict())
	if ratio := (comparison{Rounds: rounds, Higher: true}).typical().Ratio; ratio != 1.2 {
		t.Errorf("the typical rate is %g", ratio)
	}
	check.Equal(t, "of none that counts", "1 (1 to 1), no round counts", comparison{Metric: p50, Rounds: rounds[:1]}.verdict())
	if rounds, counts := (comparison{}).kept(); len(rounds) > 0 || counts {
		t.Error("no round counts")
	}
}

func TestInterval(t *testing.T) {
	check.Equal(t, "of seven", interval{1.2, 1.18, 3}, intervalOf([]float64{1.18, 1.22, 1.2, 1.19, 1.21, 1.2, 3}))
	check.Equal(t, "of one", interval{2, 2, 2}, intervalOf([]float64{2}))
	if none := intervalOf(nil); !math.IsNaN(none.Median) {
		t.Errorf("of nothing %+v", none)
	}
}

func TestBroken(t *testing.T) {
	one := func() round {
		return newRound(
			sample{Values: map[string]float64{p50: 2, p99: 4}},
			sample{Values: map[string]float64{p50: 2.5, p99: 7, requestsEach: 1.02, eventsEach: 2}},
			sample{Values: map[string]float64{p50: 2, p99: 4}}, p50)
	}
	kept := func() *report {
		return &report{
			Figures: []figure{{Scenario: "idle", Name: "CPU", Value: 0.1, Unit: "% of a core", Bound: new(0.2)}},
			Comparisons: []comparison{{
				Scenario: "drift", Kind: "configmap", Size: 100, Concurrency: 1, Contender: ours, Base: floor, Metric: p50,
				Rounds: []round{one(), one(), one(), one(), one(), one(), one()},
			}},
		}
	}
	for _, c := range []struct {
		why    string
		change func(*report)
		want   string
	}{
		{"all bounds are kept", func(*report) {}, ""},
		{"a figure is beyond its bound", func(r *report) { r.Figures[0].Value = 0.3 }, "idle: CPU: 0.30 % of a core, at most 0.20"},
		{"the bad end of the interval", func(r *report) { r.Comparisons[0].Rounds[0].Subject.Values[p50] = 3 }, "p50 ms: 1.25 (1.25 to 1.50), demanded 1.30"},
		{"a request too many of a thousand", func(r *report) { r.Comparisons[0].Rounds[0].Subject.Values[requestsEach] = 1.024 }, ""},
		{"a request too many", func(r *report) { r.Comparisons[0].Rounds[0].Subject.Values[requestsEach] = 1.1 }, "round 1: requests to the target/repair: 1.10, demanded 1.02"},
		{"a field that nobody guards", func(r *report) { r.Comparisons[0].Rounds[0].Subject.Values[strayed] = 1 }, "round 1: unguarded fields changed: 1"},
		{"a round that does not count", func(r *report) { r.Comparisons[0].Rounds[0].Discarded = []string{"noise"} }, ""},
		{"too few that count", func(r *report) {
			for i := range 2 {
				r.Comparisons[0].Rounds[i].Discarded = []string{"noise"}
			}
		}, "p50 ms: 5 rounds count, and at least 6 prove a ratio"},
		{"none that counts", func(r *report) {
			for i := range r.Comparisons[0].Rounds {
				r.Comparisons[0].Rounds[i].Discarded = []string{"noise"}
			}
		}, "p50 ms: 0 rounds count, and at least 6 prove a ratio"},
		{"another contender", func(r *report) {
			r.Comparisons[0].Contender = poller
			r.Comparisons[0].Rounds[0].Subject.Values[unrepaired] = 7
		}, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			r := kept()
			c.change(r)
			got := check.Message(r.broken())
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func requested(verb, resource, name string) kit.Request {
	e := kit.Request{Verb: verb}
	e.Object.Resource, e.Object.Name = resource, name
	return e
}

func TestClass(t *testing.T) {
	s := &set{kind: workload.ConfigMaps()}
	for want, e := range map[string]struct{ verb, resource, name string }{
		"target patch":    {"patch", "configmaps", "many-00001"},
		"target get":      {"get", "configmaps", "many-00001"},
		"hub patch":       {"patch", "configmaps", "application-many-00001"},
		"event":           {"create", "events", ""},
		"other list pods": {"list", "pods", ""},
		"other get":       {"get", "", ""},
	} {
		if got := classOf(requested(e.verb, e.resource, e.name), s); got != want {
			t.Errorf("%v is %q, want %q", e, got, want)
		}
	}
	for _, none := range []kit.Request{requested("update", "leases", "local"), requested("watch", "configmaps", "")} {
		if got := classOf(none, s); got != "" {
			t.Errorf("%v is %q", none, got)
		}
	}
	c := counts{"target patch": 2, "target get": 3, "hub patch": 1, "event": 4, "other list pods": 1}
	if c.writes() != 7 || c.sum("target") != 5 || c.sum("") != 11 {
		t.Errorf("%d writes, %d to the target, %d in all", c.writes(), c.sum("target"), c.sum(""))
	}
}

// These figures come from several comparisons.
func TestDerived(t *testing.T) {
	compared := func(contender string, size int, before, value float64) comparison {
		return comparison{
			Scenario: "drift", Kind: "configmap", Size: size, Concurrency: 1, Contender: contender, Metric: p50,
			Rounds: []round{newRound(valued(p50, before, 0), valued(p50, value, 0), valued(p50, before, 0), p50)},
		}
	}
	r := &report{Comparisons: []comparison{
		compared(ours, 100, 2, 3), compared(ours, 1000, 4, 6), compared(gitops, 1000, 2, 150), compared(poller, 1000, 2, 600),
	}}
	got := map[string]bool{}
	for _, f := range r.derived() {
		got[f.Name+": "+f.text()+", "+f.bound()] = f.isBroken()
	}
	want := map[string]bool{
		"median with 1000 configmaps to that with 100: 2 x: the floor's: 2 x, at most 1.25": true,
		"median of gitops to that of ours, 1000 configmaps: 50 x, ":                         false,
		"median of poller to that of ours, 1000 configmaps: 200 x, ":                        false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	for percent, want := range map[float64]float64{0: 1, 50: 2.5, 100: 4} {
		if got := percentile(values, percent); got != want {
			t.Errorf("%g: %g, want %g", percent, got, want)
		}
	}
	if got := percentile(nil, 50); !math.IsNaN(got) {
		t.Errorf("of nothing: %g", got)
	}
}

// A value that was not measured is left out of the file, because JSON cannot express
// it.
func TestSampleWithoutValue(t *testing.T) {
	text, err := json.Marshal(valued(p50, math.NaN(), 0.5))
	if err != nil || string(text) != `{"contender":"","values":{},"foreignCores":0.5}` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestOptions(t *testing.T) {
	quick := flagged(t, "--quick", "--rounds", "7")
	if err := quick.Complete(); err != nil || quick.Rounds != 7 || quick.Fleet > 100 {
		t.Errorf("%v: rounds %d, fleet %d", err, quick.Rounds, quick.Fleet)
	}
	for _, wrong := range [][]string{
		{"--scenarios", "thunder"}, {"--kinds", "pod"}, {"--contenders", "somebody"}, {"--sizes", "10,5"}, {"--rounds", "0"},
		{"--concurrency", "0"}, {"--per-application", "101"},
	} {
		o := flagged(t, wrong...)
		if err := o.Complete(); err == nil || !strings.Contains(err.Error(), wrong[0]) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

// Each scenario has a place in the order.
func TestOrder(t *testing.T) {
	if diff := cmp.Diff(names(scenarios()), slices.Sorted(slices.Values(order()))); diff != "" {
		t.Errorf("(-scenarios +order):\n%s", diff)
	}
}

func TestBounds(t *testing.T) {
	c := chart{series: []series{{values: []float64{2, math.NaN(), 0}}, {values: []float64{350}}}}
	if low, high := c.bounds(); low != 1 || high != 1000 {
		t.Errorf("from %g to %g", low, high)
	}
	if low, high := (chart{}).bounds(); low != 1 || high != 10 {
		t.Errorf("of nothing from %g to %g", low, high)
	}
}

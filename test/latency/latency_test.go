package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

func TestPercentile(t *testing.T) {
	cases := []struct {
		name    string
		times   []time.Duration
		percent float64
		want    time.Duration
	}{
		{"of nothing it is nothing", nil, 50, 0},
		{"of one it is that one", []time.Duration{3 * ms}, 90, 3 * ms},
		{"in the middle of an odd number, whatever their order", []time.Duration{9 * ms, 1 * ms, 2 * ms}, 50, 2 * ms},
		{"in the middle of an even number, between two", []time.Duration{4 * ms, 1 * ms, 2 * ms, 9 * ms}, 50, 3 * ms},
		{"a tenth of the way from the last but one", []time.Duration{0, 10 * ms, 20 * ms, 30 * ms}, 90, 27 * ms},
		{"the last", []time.Duration{1 * ms, 2 * ms}, 100, 2 * ms},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := percentile(c.times, c.percent); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
}

// example has two rounds: in the second, everything takes ten times as long.
func example() results {
	s := setting{size: 10, atOnce: 1}
	r := results{
		Options: Options{Sizes: []int{10}, Rounds: 2, Seed: 1},
		took:    map[cell][][]time.Duration{}, phases: map[cell]sums{},
		decoding: map[int][]time.Duration{10: {1 * ms, 3 * ms}}, computing: map[int][]time.Duration{10: {2 * ms, 6 * ms}},
	}
	for k, took := range map[kind]time.Duration{plain: 4 * ms, trivial: 6 * ms, large: 7 * ms, cached: 9 * ms, asked: 14 * ms} {
		r.took[cell{s, k}] = [][]time.Duration{{took, took}, {10 * took, 10 * took}}
	}
	r.phases[cell{s, cached}] = sums{
		`krake_webhook_admission_duration_seconds_sum{phase="whole"}`: 0.02, `krake_webhook_admission_duration_seconds_count{phase="whole"}`: 4,
		`krake_webhook_admission_duration_seconds_sum{phase="compute"}`: 0.012, `krake_webhook_admission_duration_seconds_count{phase="compute"}`: 4,
		`krake_webhook_admission_duration_seconds_sum{phase="review"}`: 0.004, `krake_webhook_admission_duration_seconds_count{phase="review"}`: 4,
		`krake_webhook_access_reviews_total{result="allowed"}`: 60,
	}
	return r
}

func TestCompare(t *testing.T) {
	got := example().compare(setting{10, 1}, cached)
	// All kinds have the same rounds in any drawing: the ratio does not depend on the
	// speed of the machine.
	want := comparison{n: 4, median: 49500 * time.Microsecond, p90: 90 * ms, added: 27500 * time.Microsecond, ratio: 2.5, low: 2.5, high: 2.5}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(comparison{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPhasesAreMeansAndWhatIsLeft(t *testing.T) {
	got := strings.Join(example().phaseRow(setting{10, 1}, cached), ", ")
	if want := "10 KiB, 1, known, 5.0 ms, 3.0 ms, 50 %, 1.0 ms, 1.0 ms, 15.0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSumsAreOfTheTurnOnly(t *testing.T) {
	into := sums{"a": 1}
	sums{"a": 15, "b": 2}.since(sums{"a": 10}, into)
	if diff := cmp.Diff(sums{"a": 6, "b": 2}, into); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A request that was not handled as its kind requires was not measured.
func TestTreated(t *testing.T) {
	var seen, admitted, neither answer
	seen.cm.Labels = map[string]string{trivialLabel: "true"}
	admitted.cm.Labels = map[string]string{"holder.krake.dev/local": "true"}
	answers := map[string]answer{"seen": seen, "admitted": admitted, "neither": neither}
	want := map[kind]string{plain: "neither", trivial: "seen", large: "seen", cached: "admitted", asked: "admitted"}
	for _, k := range kinds() {
		for name, a := range answers {
			if err := a.treated(k); (err == nil) != (name == want[k]) {
				t.Errorf("%s that was %s: %v", k, name, err)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	wrong := Options{Rounds: 0, Sizes: []int{4, 10, 257}}
	if err := wrong.Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("complaints: %v", err)
	}
	if err := (&Options{Rounds: 1, Sizes: []int{5, 256}}).Validate(); err != nil {
		t.Error(err)
	}
}

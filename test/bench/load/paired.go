package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	// mostApart is the largest difference between the two floor measurements of a round
	// that counts. mostForeign is its largest foreign load, in cores.
	mostApart   = 0.25
	mostForeign = 0.20
)

// sample is one measurement of one contender. The names of the values have the units.
type sample struct {
	Contender string             `json:"contender"`
	Values    map[string]float64 `json:"values"`
	// Foreign is the load of other processes, in cores.
	Foreign float64 `json:"foreignCores"`
}

// round is a contender's measurement between two of the floor.
type round struct {
	Before    sample   `json:"before"`
	Subject   sample   `json:"subject"`
	After     sample   `json:"after"`
	Discarded []string `json:"discarded,omitempty"`
	// Ratio is the ratio of the subject's deciding value to the mean of the floor's.
	Ratio float64 `json:"ratio"`
}

// comparison has all rounds of a contender in a scenario.
type comparison struct {
	Scenario    string  `json:"scenario"`
	Kind        string  `json:"kind"`
	Size        int     `json:"size"`
	Concurrency int     `json:"concurrency"`
	Contender   string  `json:"contender"`
	Base        string  `json:"base"`
	Metric      string  `json:"metric"`
	Higher      bool    `json:"higherIsBetter"`
	Rounds      []round `json:"rounds"`
}

// newRound judges a round by the deciding value.
func newRound(before, subject, after sample, metric string) round {
	r := round{Before: before, Subject: subject, After: after}
	a, b := before.Values[metric], after.Values[metric]
	r.Ratio = subject.Values[metric] / ((a + b) / 2)
	if apart := math.Abs(a-b) / min(a, b); apart > mostApart {
		r.Discarded = append(r.Discarded, fmt.Sprintf("the two of %s are %.0f %% apart", before.Contender, 100*apart))
	}
	if foreign := max(before.Foreign, subject.Foreign, after.Foreign); foreign > mostForeign {
		r.Discarded = append(r.Discarded, fmt.Sprintf("foreign CPU %.0f %% of a core", 100*foreign))
	}
	return r
}

// of returns the ratio of a value of the round to the floor's mean.
func (r round) of(metric string) float64 {
	return r.Subject.Values[metric] / ((r.Before.Values[metric] + r.After.Values[metric]) / 2)
}

// kept returns the rounds that count, or all if none counts.
func (c comparison) kept() (rounds []round, counts bool) {
	rounds = slices.DeleteFunc(slices.Clone(c.Rounds), func(r round) bool { return len(r.Discarded) > 0 })
	if len(rounds) == 0 {
		return c.Rounds, false
	}
	return rounds, true
}

// ratios returns the median ratio of a value to the floor, with its interval. It takes the rounds that
// count or, if none counts, all.
func (c comparison) ratios(metric string) interval {
	rounds, _ := c.kept()
	ratios := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		ratios = append(ratios, r.of(metric))
	}
	return intervalOf(ratios)
}

// typical returns the round with the median ratio, and of two such the worse.
func (c comparison) typical() round {
	rounds, _ := c.kept()
	if len(rounds) == 0 {
		return round{}
	}
	sorted := slices.SortedFunc(slices.Values(rounds), func(a, b round) int { return cmp.Compare(a.Ratio, b.Ratio) })
	if c.Higher {
		slices.Reverse(sorted)
	}
	return sorted[len(sorted)/2]
}

// paired measures each contender between two measurements of the base, in each round.
// Consecutive contenders share a base measurement.
func (w *world) paired(ctx context.Context, about comparison, s *set, contenders []string, measure func(context.Context) (sample, error)) error {
	about.Kind, about.Size = s.kind.Name, s.size
	compared := make([]comparison, len(contenders))
	for i, contender := range contenders {
		compared[i] = about
		compared[i].Contender = contender
	}
	take := func(contender string) (sample, error) {
		if err := w.become(ctx, contender, s); err != nil {
			return sample{}, err
		}
		name := fmt.Sprintf("%s-%s-%d-%d", about.Scenario, about.Kind, about.Size, about.Concurrency)
		taken, err := w.serverProfiled(ctx, name, func() (sample, error) {
			return w.profiled(name, func() (sample, error) { return measure(ctx) })
		})
		taken.Contender = contender
		if err != nil {
			return taken, fmt.Errorf("%s: %w", contender, err)
		}
		fmt.Fprintf(w.log, "load: %s %s, %d objects, %d at once: %s: %s = %.4g, foreign %.2f\n",
			about.Scenario, about.Kind, about.Size, about.Concurrency, contender, about.Metric, taken.Values[about.Metric], taken.Foreign)
		return taken, nil
	}
	for range w.Rounds {
		before, err := take(about.Base)
		if err != nil {
			return err
		}
		for i, contender := range contenders {
			subject, err := take(contender)
			if err != nil {
				return err
			}
			after, err := take(about.Base)
			if err != nil {
				return err
			}
			compared[i].Rounds = append(compared[i].Rounds, newRound(before, subject, after, about.Metric))
			before = after
		}
	}
	return w.report.compared(compared...)
}

// String returns "drift, configmap, 1,000 objects, 16 at once".
func (c comparison) String() string {
	words := []string{c.Scenario}
	if c.Kind != "" {
		words = append(words, c.Kind, fmt.Sprintf("%d objects", c.Size))
	}
	if c.Concurrency > 0 {
		words = append(words, fmt.Sprintf("%d at once", c.Concurrency))
	}
	return strings.Join(words, ", ")
}

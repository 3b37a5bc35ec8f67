package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// results has all measurements: the times of each cell by round, and the webhook's own
// times.
type results struct {
	Options

	took   map[cell][][]time.Duration
	phases map[cell]sums
	// decoding is a part of computing; both by the size of the manifest.
	decoding, computing map[int][]time.Duration
}

// comparison is the cost of a kind under a setting, relative to the others.
type comparison struct {
	n                  int
	median, p90, added time.Duration
	// ratio is the added time, relative to the time that the trivial webhook adds; low
	// and high enclose it with a probability of 90 percent.
	ratio, low, high float64
}

func (r results) compare(s setting, k kind) comparison {
	times := slices.Concat(r.took[cell{s, k}]...)
	c := comparison{
		n: len(times), median: percentile(times, 50), p90: percentile(times, 90),
		added: r.added(s, k), ratio: ratio(r.added(s, k), r.added(s, trivial)),
	}
	if k != plain && k != trivial {
		c.low, c.high = r.interval(s, k)
	}
	return c
}

// added returns the difference of the median to that of plain.
func (r results) added(s setting, k kind) time.Duration {
	return percentile(slices.Concat(r.took[cell{s, k}]...), 50) - percentile(slices.Concat(r.took[cell{s, plain}]...), 50)
}

// interval returns how far the ratio depends on the choice of rounds. It draws other
// runs from the rounds of this one (bootstrap). Rounds stay together, because the
// machine affected all kinds in a round alike.
func (r results) interval(s setting, k kind) (low, high float64) {
	const runs = 1000
	random := rand.New(rand.NewPCG(r.Seed, 1))
	rounds := len(r.took[cell{s, k}])
	ratios := make([]float64, runs)
	for run := range ratios {
		drawn := results{took: map[cell][][]time.Duration{}}
		for range rounds {
			round := random.IntN(rounds)
			for _, of := range []kind{plain, trivial, k} {
				c := cell{s, of}
				drawn.took[c] = append(drawn.took[c], r.took[c][round])
			}
		}
		ratios[run] = ratio(drawn.added(s, k), drawn.added(s, trivial))
	}
	slices.Sort(ratios)
	return ratios[runs*5/100], ratios[runs*95/100-1]
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// percentile returns the time below which this part of the times lies, and
// interpolates.
func percentile(times []time.Duration, percent float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	place := float64(len(sorted)-1) * percent / 100
	below := int(place)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + time.Duration((place-float64(below))*float64(sorted[above]-sorted[below]))
}

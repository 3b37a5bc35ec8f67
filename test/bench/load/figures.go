package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// percentile returns the value below which this part of the values lies, and
// interpolates.
func percentile(values []float64, percent float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	place := float64(len(sorted)-1) * percent / 100
	below := int(place)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (place-float64(below))*(sorted[above]-sorted[below])
}

func median(values []float64) float64 { return percentile(values, 50) }

// interval is the median of some values, the least and the largest. The median of all that could be measured lies
// between these with a probability of 1 - 2/2^n for n values: 97 % for six, 98 % for seven.
type interval struct{ Median, Low, High float64 }

// intervalOf takes the extremes. A bootstrap of seven values is never beyond the second and the sixth, which
// are right with 88 % only.
func intervalOf(values []float64) interval {
	return interval{median(values), percentile(values, 0), percentile(values, 100)}
}

// String returns "1.20 (1.10 to 1.30)".
func (i interval) String() string {
	return fmt.Sprintf("%s (%s to %s)", number(i.Median), number(i.Low), number(i.High))
}

func milliseconds(took time.Duration) float64 { return float64(took) / float64(time.Millisecond) }

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

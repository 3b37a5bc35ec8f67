package main

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// interval is a median, and between which values it lies with a probability of 95 %.
type interval struct{ Median, Low, High float64 }

// intervalOf returns the median of values with its interval, by the bootstrap: the medians of samples that
// are drawn from the values. It is the same for the same values.
func intervalOf(values []float64) interval {
	const samples = 2000
	random := rand.New(rand.NewPCG(1, 2))
	medians := make([]float64, samples)
	drawn := make([]float64, len(values))
	for i := range medians {
		for j := range drawn {
			drawn[j] = values[random.IntN(len(values))]
		}
		medians[i] = median(drawn)
	}
	return interval{median(values), percentile(medians, 2.5), percentile(medians, 97.5)}
}

// String returns "1.20 (1.10 to 1.30)".
func (i interval) String() string {
	return fmt.Sprintf("%s (%s to %s)", number(i.Median), number(i.Low), number(i.High))
}

func milliseconds(took time.Duration) float64 { return float64(took) / float64(time.Millisecond) }

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

package main

import (
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

func milliseconds(took time.Duration) float64 { return float64(took) / float64(time.Millisecond) }

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

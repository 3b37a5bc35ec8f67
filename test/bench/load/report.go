package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"
)

// units says in which direction units are better that go up.
const units = "Unit repairs/s better=higher\nUnit objects/s better=higher\n\n"

// sample has the values of one measurement, by unit.
type sample map[string]float64

// The units of what our agent must not do.
const (
	strayed    = "unguarded-fields-changed"
	relapsed   = "relapsed"
	unrepaired = "unrepaired"
)

// report writes results in the format of Go's benchmarks.
type report struct {
	out io.Writer
	// wrong has the wrong repairs by our agent.
	wrong []error
}

// add writes a measurement of a contender. The values that were not measured, and those of nothing wrong, are left out.
func (r *report) add(name, contender string, taken sample) {
	fmt.Fprintf(r.out, "Benchmark%s/who=%s 1", name, contender)
	for _, unit := range slices.Sorted(maps.Keys(taken)) {
		value, isWrong := taken[unit], slices.Contains([]string{strayed, relapsed, unrepaired}, unit)
		if math.IsNaN(value) || math.IsInf(value, 0) || isWrong && value == 0 {
			continue
		}
		fmt.Fprintf(r.out, " %.6g %s", value, unit)
		if isWrong && isOurs(contender) {
			r.wrong = append(r.wrong, fmt.Errorf("%s: %s: %g %s", name, contender, value, unit))
		}
	}
	fmt.Fprintln(r.out)
}

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

func milliseconds(took time.Duration) float64 { return float64(took) / float64(time.Millisecond) }

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// figure is a single value.
type figure struct {
	Scenario string  `json:"scenario"`
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	// Bound is the limit: Least makes it a lower one. nil means no requirement.
	Bound *float64 `json:"bound,omitempty"`
	Least *float64 `json:"least,omitempty"`
	Note  string   `json:"note,omitempty"`
}

// report has all measurements.
type report struct {
	Began       time.Time    `json:"began"`
	Processors  int          `json:"processors"`
	Command     []string     `json:"command"`
	Comparisons []comparison `json:"comparisons"`
	Figures     []figure     `json:"figures"`

	out  io.Writer
	json string
}

// compared adds comparisons, and prints each.
func (r *report) compared(more ...comparison) error {
	for _, c := range more {
		r.Comparisons = append(r.Comparisons, c)
		c.write(r.out)
	}
	return r.save()
}

// measured adds figures, and prints each.
func (r *report) measured(more ...figure) error {
	for _, f := range more {
		r.Figures = append(r.Figures, f)
		fmt.Fprintf(r.out, "| %s | %s | %s | %s |\n", f.Scenario, f.Name, f.text(), f.bound())
	}
	return r.save()
}

// save writes the file after each measurement, so that an interrupted bench leaves its
// results.
func (r *report) save() error {
	if r.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("write %s: %w", r.json, err)
	}
	return os.WriteFile(r.json, append(text, '\n'), 0o644)
}

// MarshalJSON omits values that could not be measured.
func (s sample) MarshalJSON() ([]byte, error) {
	type plain sample
	clean := plain{Contender: s.Contender, Foreign: s.Foreign, Values: map[string]float64{}}
	for name, value := range s.Values {
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			clean.Values[name] = value
		}
	}
	return json.Marshal(clean)
}

func (f figure) text() string {
	text := strings.TrimSpace(number(f.Value) + " " + f.Unit)
	if f.Note != "" {
		text += ": " + f.Note
	}
	return text
}

func (f figure) bound() string {
	switch {
	case f.Bound != nil:
		return "at most " + number(*f.Bound)
	case f.Least != nil:
		return "at least " + number(*f.Least)
	}
	return ""
}

// isBroken reports whether the figure exceeds its bound.
func (f figure) isBroken() bool {
	return f.Bound != nil && f.Value > *f.Bound || f.Least != nil && f.Value < *f.Least
}

// number returns a number with three significant digits, or all digits before the
// decimal point.
func number(value float64) string {
	switch size := math.Abs(value); {
	case math.IsNaN(value):
		return "-"
	case value == math.Trunc(value) || size >= 100:
		return fmt.Sprintf("%.0f", value)
	case size >= 10:
		return fmt.Sprintf("%.1f", value)
	case size >= 0.01:
		return fmt.Sprintf("%.2f", value)
	}
	return fmt.Sprintf("%.2g", value)
}

// write prints all rounds of a comparison, and the median of their ratios.
func (c comparison) write(out io.Writer) {
	fmt.Fprintf(out, "\n%s: %s beside %s\n\n", c, c.Contender, c.Base)
	columns := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug)
	shown := c.columns()
	fmt.Fprintf(columns, "| round\t who\t %s\t foreign\t\n", strings.Join(shown, "\t "))
	fmt.Fprintf(columns, "|---\t---\t%s---\t\n", strings.Repeat("---\t", len(shown)))
	for n, r := range c.Rounds {
		for _, s := range []sample{r.Before, r.Subject, r.After} {
			cells := make([]string, len(shown))
			for i, name := range shown {
				cells[i] = number(s.Values[name])
			}
			fmt.Fprintf(columns, "| %d\t %s\t %s\t %.2f\t\n", n+1, s.Contender, strings.Join(cells, "\t "), s.Foreign)
		}
	}
	_ = columns.Flush() // text for the terminal
	for n, r := range c.Rounds {
		verdict := "counts"
		if len(r.Discarded) > 0 {
			verdict = "discarded: " + strings.Join(r.Discarded, "; ")
		}
		fmt.Fprintf(out, "round %d: %s: ratio %s: %s\n", n+1, c.Metric, number(r.Ratio), verdict)
	}
	word := "median of those that count"
	if _, counts := c.kept(); !counts {
		word = "none counts; median of all"
	}
	fmt.Fprintf(out, "%s: %s\n", word, c.ratios(c.Metric))
}

// columns returns the values that the table of this scenario has.
func (c comparison) columns() []string {
	all := []string{
		p50, p90, p99, answered50, rate, seconds, latency50, latency99, eventsEach, requestsEach, hubWrites, eventWrites, strayed, relapsed, unrepaired,
		cpuEach, serverCPUEach, resident, eventCPU, slower, statusEach, statusRate,
	}
	return slices.DeleteFunc(all, func(name string) bool {
		return !slices.ContainsFunc(c.Rounds, func(r round) bool {
			_, ok := r.Subject.Values[name]
			return ok
		})
	})
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// own is the engine by whose time the others' are divided.
const own = "krake"

// table has the figures in the order in which they were first met.
type table struct {
	rows    []row
	engines []string
	// runs of each cell, by unit as package benchfmt has them: sec/op, B/op, allocs/op.
	runs map[cell]map[string][]float64
}

type (
	row  struct{ object, operation string }
	cell struct {
		row

		engine string
	}
)

// read takes the figures from the output of go test -bench.
func read(text []byte) (table, error) {
	t := table{runs: map[cell]map[string][]float64{}}
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("FAIL")) || bytes.HasPrefix(bytes.TrimSpace(line), []byte("--- FAIL")) {
			return table{}, fmt.Errorf("the test failed: %s", bytes.TrimSpace(line))
		}
	}
	reader := benchfmt.NewReader(bytes.NewReader(text), "input")
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return table{}, record
		case *benchfmt.Result:
			if err := t.add(record); err != nil {
				return table{}, err
			}
		}
	}
	if len(t.rows) == 0 {
		return table{}, errors.Join(errors.New("there are no figures"), reader.Err())
	}
	return t, reader.Err()
}

func (t *table) add(result *benchfmt.Result) error {
	c := cell{row{part(result.Name, "object"), part(result.Name, "op")}, part(result.Name, "engine")}
	if c.object == "" || c.operation == "" || c.engine == "" {
		return fmt.Errorf("the name lacks op, object or engine: %s", result.Name)
	}
	if !slices.Contains(t.rows, c.row) {
		t.rows = append(t.rows, c.row)
	}
	if !slices.Contains(t.engines, c.engine) {
		t.engines = append(t.engines, c.engine)
	}
	if t.runs[c] == nil {
		t.runs[c] = map[string][]float64{}
	}
	for _, value := range result.Values {
		t.runs[c][value.Unit] = append(t.runs[c][value.Unit], value.Value)
	}
	return nil
}

// part gives the value of a key in a benchmark's name.
func part(name benchfmt.Name, key string) string {
	_, parts := name.Parts()
	for _, p := range parts {
		if value, ok := strings.CutPrefix(string(p), "/"+key+"="); ok {
			return value
		}
	}
	return ""
}

// markdown writes the medians, their spread and the ratios.
func (t table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| object | operation | %s |\n", strings.Join(t.engines, " | "))
	b.WriteString("|---|---|" + strings.Repeat("---|", len(t.engines)) + "\n")
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s | %s |", r.object, r.operation)
		for _, engine := range t.engines {
			fmt.Fprintf(&b, " %s |", t.figures(cell{r, engine}))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (t table) figures(c cell) string {
	runs := t.runs[c]
	if runs == nil {
		return "-"
	}
	time, spread := median(runs["sec/op"])
	size, _ := median(runs["B/op"])
	allocations, _ := median(runs["allocs/op"])
	text := fmt.Sprintf("%s ±%.0f%%, %s, %s allocs", scaled(time*1e9, 1000, "ns", "µs", "ms", "s"), 100*spread,
		scaled(size, 1024, "B", "KiB", "MiB", "GiB"), digits(allocations))
	if ours, _ := median(t.runs[cell{c.row, own}]["sec/op"]); c.engine != own && ours > 0 {
		text = "**" + digits(time/ours) + "×** " + text
	}
	return text
}

// median gives also how far the farthest run is from it, as a part of it.
func median(runs []float64) (middle, spread float64) {
	if len(runs) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(runs))
	middle = (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	if middle > 0 {
		spread = max(middle-sorted[0], sorted[len(sorted)-1]-middle) / middle
	}
	return middle, spread
}

// scaled gives a value in the first unit in which it is below a step, or in the last.
func scaled(value, step float64, units ...string) string {
	for ; value >= step && len(units) > 1; units = units[1:] {
		value /= step
	}
	return digits(value) + " " + units[0]
}

// digits gives the first three digits of a number, or all before the point.
func digits(value float64) string {
	if value >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}

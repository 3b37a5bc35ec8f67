package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// write writes the tables.
func (r results) write(out io.Writer, markdown bool) {
	fmt.Fprintf(out, "Seed %d. Added: difference to the median of plain. Ratio: added, divided by what the trivial webhook adds, with its 90 %% interval.\n\n", r.Seed)
	rows := [][]string{{"size", "at once", "request", "n", "median", "p90", "added", "ratio"}}
	for _, s := range r.settings() {
		for _, k := range kinds() {
			rows = append(rows, r.row(s, k))
		}
	}
	table(out, rows, markdown)

	fmt.Fprint(out, "\nIn the webhook, means for each Application:\n\n")
	rows = [][]string{{"size", "at once", "rights", "whole", "compute", "decoding of it", "review", "the rest", "asked for"}}
	for _, s := range r.settings() {
		for _, k := range []kind{cached, asked} {
			rows = append(rows, r.phaseRow(s, k))
		}
	}
	table(out, rows, markdown)
}

// settings returns the settings in the order of the tables.
func (r results) settings() []setting {
	var all []setting
	for _, atOnce := range []int{1, turn} {
		for _, size := range r.Sizes {
			all = append(all, setting{size, atOnce})
		}
	}
	return all
}

func (r results) row(s setting, k kind) []string {
	c := r.compare(s, k)
	row := []string{kibibytes(s.size), fmt.Sprint(s.atOnce), k.String(), fmt.Sprint(c.n), milliseconds(c.median), milliseconds(c.p90)}
	switch k {
	case plain:
		return append(row, "", "")
	case trivial:
		return append(row, milliseconds(c.added), "1")
	}
	return append(row, milliseconds(c.added), fmt.Sprintf("%.1f (%.1f to %.1f)", c.ratio, c.low, c.high))
}

func (r results) phaseRow(s setting, k kind) []string {
	phases := r.phases[cell{s, k}]
	of := func(phase string) time.Duration { return time.Duration(phases.phase(phase) * float64(time.Second)) }
	decoding := "" // shown only without concurrent requests
	if s.atOnce == 1 {
		decoding = fmt.Sprintf("%.0f %%", 100*ratio(percentile(r.decoding[s.size], 50), percentile(r.computing[s.size], 50)))
	}
	rights := "known"
	if k == asked {
		rights = "asked for"
	}
	return []string{
		kibibytes(s.size), fmt.Sprint(s.atOnce), rights, milliseconds(of("whole")), milliseconds(of("compute")), decoding,
		milliseconds(of("review")), milliseconds(of("whole") - of("compute") - of("review")),
		fmt.Sprintf("%.1f", phases.reviews()/phases.requests()),
	}
}

func kibibytes(size int) string { return fmt.Sprintf("%d KiB", size) }

func milliseconds(took time.Duration) string { return fmt.Sprintf("%.1f ms", took.Seconds()*1000) }

// table writes rows, of which the first is the heading.
func table(out io.Writer, rows [][]string, markdown bool) {
	if !markdown {
		columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, row := range rows {
			fmt.Fprintln(columns, strings.Join(row, "\t"))
		}
		_ = columns.Flush() // text for the terminal
		return
	}
	for n, row := range rows {
		fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
		if n == 0 {
			fmt.Fprintf(out, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
}

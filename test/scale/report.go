package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// objects is how many an Application has.
const objects = 3

// mostGrowth is by how much the agent may grow for what is no business of its.
const mostGrowth = 5 << 20

// results are what was measured.
type results struct {
	Options

	first, again, idle counts
	// took is from the start of the first agent until all Applications run.
	took time.Duration
	// ready is from the start of the second agent until it says that it is, and
	// repaired until it has repaired a drift.
	ready, repaired time.Duration
	// bare is the memory of an agent without Applications, full of one with all of
	// them, crowded of the same after the ConfigMaps of somebody else.
	bare, full, crowded int64
}

// write writes the table.
func (r results) write(out io.Writer) {
	seconds := func(took time.Duration) string { return fmt.Sprintf("%.1f s", took.Seconds()) }
	mebibytes := func(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
	perObject := float64(r.full-r.bare) / float64(r.Applications*objects) / (1 << 10)
	rows := [][3]string{
		{"what", "measured", "bound"},
		{"from nothing: until all run", seconds(r.took), ""},
		{"from nothing: requests", r.first.String(), ""},
		{"from nothing: requests for an Application", fmt.Sprintf("%.1f", float64(r.first.asked())/float64(r.Applications)), ""},
		{"restart: until ready", seconds(r.ready), ""},
		{"restart: until a drift is repaired", seconds(r.repaired), ""},
		{"restart: requests", r.again.String(), ""},
		{"restart: writes", fmt.Sprint(r.again.writes()), "0"},
		{fmt.Sprintf("idle for %s: requests", r.Idle), r.idle.String(), ""},
		{"idle: beyond watches and lists", fmt.Sprint(r.idle.asked()), "0"},
		{"memory without Applications", mebibytes(r.bare), ""},
		{fmt.Sprintf("memory with %d", r.Applications), mebibytes(r.full), ""},
		{"memory for an object", fmt.Sprintf("%.1f KiB", perObject), ""},
		{fmt.Sprintf("growth by %d unrelated ConfigMaps", r.Unrelated), mebibytes(r.crowded - r.full), mebibytes(mostGrowth)},
	}
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(columns, "%s\t%s\t%s\n", row[0], row[1], row[2])
	}
	_ = columns.Flush() // text for a person
}

// broken tells which bounds are.
func (r results) broken() error {
	var failures []error
	if writes := r.again.writes(); writes > 0 {
		failures = append(failures, fmt.Errorf("a restarted agent makes %d writes: %s", writes, r.again))
	}
	if asked := r.idle.asked(); asked > 0 {
		failures = append(failures, fmt.Errorf("an idle agent makes %d requests: %s", asked, r.idle))
	}
	if growth := r.crowded - r.full; growth >= mostGrowth {
		failures = append(failures, fmt.Errorf("the agent grows by %d bytes for what is no business of its", growth))
	}
	return errors.Join(failures...)
}

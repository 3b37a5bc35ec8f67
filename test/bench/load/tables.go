package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// load reads the results of an earlier run.
func load(from string, out io.Writer) (*report, error) {
	text, err := os.ReadFile(from)
	if err != nil {
		return nil, err
	}
	r := &report{out: out}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	return r, nil
}

// tables returns everything as Markdown, a line for each comparison.
func (r *report) tables() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d processors, `%s`.\n", r.Began.Format("2006-01-02"), r.Processors, strings.Join(append([]string{"make bench"}, r.Command...), " "))
	for _, name := range order() {
		var chosen []comparison
		for _, c := range r.Comparisons {
			if c.Scenario == name {
				chosen = append(chosen, c)
			}
		}
		if len(chosen) > 0 {
			writeComparisons(&b, name, chosen)
		}
	}
	if figures := append(slices.Clone(r.Figures), r.derived()...); len(figures) > 0 {
		b.WriteString("\n### Single figures\n\n| scenario | what | measured | demanded |\n|---|---|---|---|\n")
		for _, f := range figures {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Scenario, f.Name, f.text(), f.bound())
		}
	}
	return b.String()
}

// writeComparisons writes the table of a scenario. The values are those of the round with the median
// ratio; the deciding ones are those of all.
func writeComparisons(b *strings.Builder, name string, all []comparison) {
	shown := slices.DeleteFunc([]string{p99, serving50, eventsEach, requestsEach, cpuEach, serverCPUEach, resident, latency99, statusEach, statusRate}, func(metric string) bool {
		return !slices.Contains(all[0].columns(), metric)
	})
	heads := []string{"objects", "at once", "who", all[0].Base + ", **who**, " + all[0].Base + ", by rounds", "ratio"}
	hasP99 := slices.Contains(shown, p99)
	if hasP99 {
		heads = append(heads, "ratio of p99")
	}
	heads = append(heads, shown...)
	title := strings.ToUpper(name[:1]) + name[1:]
	fmt.Fprintf(b, "\n### %s\n\n| %s |\n|%s\n", title, strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, c := range all {
		typical := c.typical()
		cells := []string{fmt.Sprintf("%d %ss", c.Size, c.Kind), fmt.Sprint(max(1, c.Concurrency)), c.Contender, c.rounds(), c.verdict()}
		if hasP99 {
			cells = append(cells, c.ratios(p99).String())
		}
		for _, metric := range shown {
			cells = append(cells, number(typical.Subject.Values[metric]))
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
}

// rounds returns the deciding values of all rounds.
func (c comparison) rounds() string {
	var rounds []string
	for _, r := range c.Rounds {
		text := fmt.Sprintf("%s, **%s**, %s", number(r.Before.Values[c.Metric]), number(r.Subject.Values[c.Metric]), number(r.After.Values[c.Metric]))
		if len(r.Discarded) > 0 {
			text += " (discarded)"
		}
		rounds = append(rounds, text)
	}
	return c.Metric + ": " + strings.Join(rounds, "; ")
}

// verdict returns the median of the ratios with its interval, and how many rounds count.
func (c comparison) verdict() string {
	ratio := c.ratios(c.Metric)
	rounds, counts := c.kept()
	if !counts {
		return ratio.String() + ", no round counts"
	}
	return fmt.Sprintf("**%s** (%s to %s), %d of %d rounds", number(ratio.Median), number(ratio.Low), number(ratio.High), len(rounds), len(c.Rounds))
}

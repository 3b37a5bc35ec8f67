package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// chart has bars in groups, on a logarithmic scale, because contenders differ by powers
// of ten.
type chart struct {
	title, unit string
	groups      []string
	series      []series
}

// series are the bars of one contender, one for each group; NaN means no bar.
type series struct {
	name   string
	values []float64
}

// plot writes the charts into a folder, unless it is empty.
func (r *report) plot(folder string) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("write plots: %w", err)
	}
	var failures []error
	for name, c := range map[string]chart{
		"drift.svg":   r.chart("From a drift to its repair, median, one at a time", p50, func(c comparison) bool { return c.Concurrency == 1 }, sizeOf),
		"p99.svg":     r.chart("From a drift to its repair, 99 of 100, one at a time", p99, func(c comparison) bool { return c.Concurrency == 1 }, sizeOf),
		"repairs.svg": r.chart("Repairs a second, by how many drifts there are at once", rate, func(comparison) bool { return true }, concurrencyOf),
	} {
		if len(c.groups) > 0 {
			failures = append(failures, os.WriteFile(filepath.Join(folder, name), []byte(c.svg()), 0o644))
		}
	}
	return errors.Join(failures...)
}

func sizeOf(c comparison) string { return fmt.Sprintf("%d %ss", c.Size, c.Kind) }

func concurrencyOf(c comparison) string {
	return fmt.Sprintf("%d of %d %ss", c.Concurrency, c.Size, c.Kind)
}

// chart charts the chosen drift comparisons: a group for each name, with the floor and
// each contender, by the round with the median ratio.
func (r *report) chart(title, metric string, chosen func(comparison) bool, group func(comparison) string) chart {
	made := chart{title: title, unit: metric}
	place := map[string]int{}
	values := map[string]map[int]float64{}
	var contenders []string
	put := func(contender string, at int, value float64) {
		if values[contender] == nil {
			values[contender] = map[int]float64{}
			contenders = append(contenders, contender)
		}
		if _, ok := values[contender][at]; !ok {
			values[contender][at] = value
		}
	}
	for _, c := range r.Comparisons {
		if c.Scenario != "drift" || !chosen(c) || len(c.Rounds) == 0 {
			continue
		}
		name := group(c)
		if _, ok := place[name]; !ok {
			place[name] = len(made.groups)
			made.groups = append(made.groups, name)
		}
		typical := c.typical()
		put(c.Base, place[name], (typical.Before.Values[metric]+typical.After.Values[metric])/2)
		put(c.Contender, place[name], typical.Subject.Values[metric])
	}
	for _, contender := range contenders {
		one := series{name: contender}
		for at := range made.groups {
			value, ok := values[contender][at]
			if !ok {
				value = math.NaN()
			}
			one.values = append(one.values, value)
		}
		made.series = append(made.series, one)
	}
	return made
}

// svg draws the chart.
func (c chart) svg() string {
	const (
		bar, gap, left, top, height = 22, 26, 60, 50, 260
		name                        = 116 // the width of a group's name
		colours                     = "#8a8f98 #1f6feb #d29922 #cf222e #8250df"
	)
	palette := strings.Fields(colours)
	low, high := c.bounds()
	y := func(value float64) float64 {
		return top + height*(1-(math.Log10(value)-math.Log10(low))/(math.Log10(high)-math.Log10(low)))
	}
	wide := max(name, len(c.series)*bar+gap)
	indent := (wide - len(c.series)*bar) / 2
	width := left + len(c.groups)*wide + 20
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", max(width, 460), top+height+70)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="10" y="20" font-size="14">%s</text>`+"\n", c.title)
	fmt.Fprintf(&b, `<text x="10" y="38">%s, logarithmic</text>`+"\n", c.unit)
	for line := low; line <= high*1.0001; line *= 10 {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, width-10, y(line), y(line), left-6, y(line)+4, number(line))
	}
	for g, group := range c.groups {
		for n, s := range c.series {
			if math.IsNaN(s.values[g]) || s.values[g] <= 0 {
				continue
			}
			x, from := left+indent+g*wide+n*bar, y(s.values[g])
			fmt.Fprintf(&b, `<rect x="%d" y="%.1f" width="%d" height="%.1f" fill="%s"><title>%s: %s</title></rect>`+"\n",
				x, from, bar-3, top+height-from, palette[n%len(palette)], s.name, number(s.values[g]))
			fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="middle" font-size="8">%s</text>`+"\n", x+bar/2-1, from-3, number(s.values[g]))
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" font-size="9">%s</text>`+"\n", left+g*wide+wide/2, top+height+16, group)
	}
	for n, s := range c.series {
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			left+n*90, top+height+40, palette[n%len(palette)], left+n*90+14, top+height+49, s.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// bounds returns the powers of ten around all values.
func (c chart) bounds() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range c.series {
		for _, value := range s.values {
			if value > 0 { // neither NaN nor zero
				low, high = min(low, value), max(high, value)
			}
		}
	}
	if math.IsInf(low, 1) {
		return 1, 10
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	if low == high {
		high *= 10
	}
	return low, high
}

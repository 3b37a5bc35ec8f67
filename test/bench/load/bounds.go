package main

import (
	"errors"
	"fmt"
	"slices"
)

// bound is a requirement on the agent in a scenario.
type bound struct {
	scenario, metric string
	// ratio limits the ratio to the floor, value the absolute value; one of them is
	// set.
	ratio, value float64
	// least: it is a lower bound.
	least bool
	// concurrency is the concurrency that it applies to, 0 for all.
	concurrency int
}

func bounds() []bound {
	return []bound{
		{scenario: "drift", metric: p50, ratio: 1.3, concurrency: 1},
		{scenario: "drift", metric: p99, ratio: 2, concurrency: 1},
		{scenario: "drift", metric: rate, ratio: 0.85, least: true, concurrency: 64},
		{scenario: "drift", metric: requestsEach, value: 1.02},
		{scenario: "drift", metric: eventsEach, value: 2.00},
		{scenario: "storm", metric: seconds, ratio: 1.3},
		{scenario: "restart", metric: seconds, ratio: 1.6},
		{scenario: "harm", metric: latency50, ratio: 1.05},
		{scenario: "churn", metric: eventCPU, ratio: 2},
		{scenario: "rollout", metric: statusEach, value: 3},
		{scenario: "rollout", metric: slower, value: 1.5},
	}
}

// broken returns an error for exceeded bounds. If too few rounds of a comparison count, its times prove
// nothing, but its counts do.
func (r *report) broken() error {
	failures := []error{r.wrong()}
	for _, f := range append(slices.Clone(r.Figures), r.derived()...) {
		if f.isBroken() {
			failures = append(failures, fmt.Errorf("%s: %s: %s, %s", f.Scenario, f.Name, f.text(), f.bound()))
		}
	}
	for _, c := range r.Comparisons {
		if c.Contender != ours {
			continue
		}
		for _, b := range bounds() {
			failures = append(failures, b.check(c))
		}
	}
	return errors.Join(failures...)
}

// fewest is the number of rounds that have to count for a ratio to be proved.
const fewest = 6

// rounding is by how much a value may exceed a bound of two decimals.
const rounding = 0.005

// check compares a ratio by the bad end of its interval, and a count by its worst round.
func (b bound) check(c comparison) error {
	if b.scenario != c.Scenario || b.concurrency != 0 && b.concurrency != c.Concurrency {
		return nil
	}
	if b.ratio == 0 {
		return b.checkCount(c)
	}
	if rounds, counts := c.kept(); !counts || len(rounds) < fewest {
		counted := len(rounds)
		if !counts {
			counted = 0
		}
		return fmt.Errorf("%s: %s: %d rounds count, and at least %d prove a ratio", c, b.metric, counted, fewest)
	}
	got := c.ratios(b.metric)
	if b.least && got.Low < b.ratio || !b.least && got.High > b.ratio+rounding {
		return fmt.Errorf("%s: %s: %s, demanded %s", c, b.metric, got, number(b.ratio))
	}
	return nil
}

func (b bound) checkCount(c comparison) error {
	for n, round := range c.Rounds {
		if got := round.Subject.Values[b.metric]; got > b.value+rounding {
			return fmt.Errorf("%s, round %d: %s: %s, demanded %s", c, n+1, b.metric, number(got), number(b.value))
		}
	}
	return nil
}

// wrong returns an error for wrong repairs by the agent, in any round.
func (r *report) wrong() error {
	var failures []error
	for _, c := range r.Comparisons {
		for n, round := range c.Rounds {
			for _, name := range []string{strayed, relapsed, unrepaired} {
				if c.Contender == ours && round.Subject.Values[name] > 0 {
					failures = append(failures, fmt.Errorf("%s, round %d: %s: %s", c, n+1, name, number(round.Subject.Values[name])))
				}
			}
		}
	}
	return errors.Join(failures...)
}

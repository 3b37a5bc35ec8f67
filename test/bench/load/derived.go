package main

import "fmt"

// derived returns figures from several comparisons: the agent and the other contenders,
// and many objects and few. They come from the best rounds, and are as reliable as
// these.
func (r *report) derived() []figure {
	var figures []figure
	few := map[string]comparison{}
	for _, c := range r.Comparisons {
		if c.Scenario != "drift" || c.Concurrency != 1 || len(c.Rounds) == 0 {
			continue
		}
		best, _ := c.best()
		if c.Contender != ours {
			figures = append(figures, r.faster(c, best)...)
			continue
		}
		first, known := few[c.Kind]
		if !known {
			few[c.Kind] = c
			continue
		}
		base, _ := first.best()
		figures = append(figures, figure{
			Scenario: "drift", Name: fmt.Sprintf("median with %d %ss to that with %d", c.Size, c.Kind, first.Size),
			Value: best.Subject.Values[p50] / base.Subject.Values[p50], Unit: "x", Bound: most(1.25),
			Note: fmt.Sprintf("the floor's: %s x", number(floorOf(best)/floorOf(base))),
		})
	}
	return figures
}

func floorOf(r round) float64 { return (r.Before.Values[p50] + r.After.Values[p50]) / 2 }

// faster returns how many times as long as the agent another contender takes, each
// relative to the floors around it.
func (r *report) faster(other comparison, best round) []figure {
	for _, c := range r.Comparisons {
		if c.Scenario == "drift" && c.Contender == ours && c.Kind == other.Kind && c.Size == other.Size && c.Concurrency == 1 && len(c.Rounds) > 0 {
			ourBest, _ := c.best()
			return []figure{{
				Scenario: "drift", Name: fmt.Sprintf("median of %s to that of ours, %d %ss", other.Contender, other.Size, other.Kind),
				Value: best.Ratio / ourBest.Ratio, Unit: "x", Least: least(other),
			}}
		}
	}
	return nil
}

// least returns how much faster than another contender the agent must be.
func least(than comparison) *float64 {
	const size = 1000
	switch {
	case than.Size == size && than.Contender == gitops:
		return most(50)
	case than.Size == size && than.Contender == poller:
		return most(300)
	}
	return nil
}

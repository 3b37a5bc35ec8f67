package main

import "fmt"

// derived returns figures from several comparisons: the agent and the other contenders,
// and many objects and few. They come from the medians of the ratios, and from the rounds that have them.
func (r *report) derived() []figure {
	var figures []figure
	few := map[string]comparison{}
	for _, c := range r.Comparisons {
		if c.Scenario != "drift" || c.Concurrency != 1 || len(c.Rounds) == 0 {
			continue
		}
		if c.Contender != ours {
			figures = append(figures, r.faster(c)...)
			continue
		}
		first, known := few[c.Kind]
		if !known {
			few[c.Kind] = c
			continue
		}
		many, few := c.typical(), first.typical()
		figures = append(figures, figure{
			Scenario: "drift", Name: fmt.Sprintf("median with %d %ss to that with %d", c.Size, c.Kind, first.Size),
			Value: many.Subject.Values[p50] / few.Subject.Values[p50], Unit: "x", Bound: new(1.25),
			Note: fmt.Sprintf("the floor's: %s x", number(floorOf(many)/floorOf(few))),
		})
	}
	return figures
}

func floorOf(r round) float64 { return (r.Before.Values[p50] + r.After.Values[p50]) / 2 }

// faster returns how many times as long as the agent another contender takes, each
// relative to the floors around it. Nothing is demanded of that: it grows with the objects of an Application.
func (r *report) faster(other comparison) []figure {
	for _, c := range r.Comparisons {
		if c.Scenario == "drift" && c.Contender == ours && c.Kind == other.Kind && c.Size == other.Size && c.Concurrency == 1 && len(c.Rounds) > 0 {
			return []figure{{
				Scenario: "drift", Name: fmt.Sprintf("median of %s to that of ours, %d %ss", other.Contender, other.Size, other.Kind),
				Value: other.ratios(p50).Median / c.ratios(p50).Median, Unit: "x",
			}}
		}
	}
	return nil
}

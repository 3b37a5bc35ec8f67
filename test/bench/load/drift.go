package main

import (
	"context"
	"fmt"
	"time"
)

// driftsAt returns the number of drifts in a measurement with this concurrency.
func (w *world) driftsAt(concurrency int) int {
	count := w.Drifts
	if concurrency > 1 {
		count *= 4
	}
	if w.running == gitops {
		return max(10, count/5)
	}
	return count
}

// drift measures drifts with this concurrency.
func (w *world) drift(ctx context.Context, s *set, concurrency int) (sample, error) {
	d, err := w.newDrifter(ctx, s)
	if err != nil {
		return nil, err
	}
	// The first ones do not count, because they open connections.
	if err := d.run(ctx, min(20, w.driftsAt(concurrency)), concurrency); err != nil {
		return nil, err
	}
	d.stop()
	if d, err = w.newDrifter(ctx, s); err != nil {
		return nil, err
	}
	return w.measured(ctx, d, func() error { return d.run(ctx, w.driftsAt(concurrency), concurrency) })
}

// measured measures while a drifter acts, and stops the drifter.
func (w *world) measured(ctx context.Context, d *drifter, act func() error) (sample, error) {
	meter, err := w.meter()
	if err != nil {
		return nil, err
	}
	if err := act(); err != nil {
		return nil, err
	}
	used, err := meter.read()
	if err != nil {
		return nil, err
	}
	// Late writes count, and so does a field that changes back.
	requests, err := w.settle(ctx, meter.mark, user(w.running), d.set)
	if err != nil {
		return nil, err
	}
	all, err := meter.read()
	if err != nil {
		return nil, err
	}
	d.stop()
	stray, err := d.strayed()
	if err != nil {
		return nil, err
	}
	taken, drifts := used.into(d.sample(used.long)), float64(max(1, len(d.closed)+d.unrepaired))
	taken["requests/repair"] = requests.sum("target") / drifts
	taken["hub-writes"] = requests.sum("hub patch") + requests.sum("hub update")
	taken[strayed] = float64(stray)
	taken["cpu-ms/drift"] = milliseconds(all.contender) / drifts
	taken["server-cpu-ms/drift"] = milliseconds(all.server) / drifts
	return taken, nil
}

// sample returns the drifter's own figures. A drift lives from the event that shows it to the event with
// the right value.
func (d *drifter) sample(long time.Duration) sample {
	var life []float64
	for _, one := range d.closed {
		life = append(life, milliseconds(one.back.Sub(one.seen)))
	}
	return sample{
		"p50-ms": percentile(life, 50), "p90-ms": percentile(life, 90), "p99-ms": percentile(life, 99),
		"repairs/s": float64(len(d.closed)) / long.Seconds(), "events/drift": float64(d.events) / float64(max(1, len(d.closed)+d.unrepaired)),
		relapsed: float64(d.relapsed), unrepaired: float64(d.unrepaired),
	}
}

// driftScenario compares at each concurrency. The loop over gitops-engine would be far too slow beyond 16.
func (w *world) driftScenario(ctx context.Context, s *set) error {
	for _, concurrency := range w.Concurrency {
		contenders := append([]string{floor}, w.agents()...)
		if w.has(gitops) && concurrency <= 16 {
			contenders = append(contenders, gitops)
		}
		err := w.rounds(ctx, fmt.Sprintf("Drift/at-once=%d", concurrency), s, contenders, func(ctx context.Context) (sample, error) {
			return w.drift(ctx, s, concurrency)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stormScenario drifts every object, and waits until all are repaired.
func (w *world) stormScenario(ctx context.Context, s *set) error {
	const concurrency = 64
	return w.rounds(ctx, "Storm", s, append([]string{floor}, w.agents()...), func(ctx context.Context) (sample, error) {
		d, err := w.newDrifter(ctx, s)
		if err != nil {
			return nil, err
		}
		d.patience = 15 * time.Minute
		began := time.Now()
		var took time.Duration
		taken, err := w.measured(ctx, d, func() error {
			defer func() { took = time.Since(began) }()
			return d.storm(ctx, concurrency)
		})
		if err == nil {
			taken["s"] = took.Seconds()
		}
		return taken, err
	})
}

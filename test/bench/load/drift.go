package main

import (
	"context"
	"fmt"
	"time"

	"github.com/krake-observer/krake-observer/test/program"
	"github.com/krake-observer/krake-observer/test/usage"
)

// The names of values, with their units.
const (
	p50           = "p50 ms"
	p90           = "p90 ms"
	p99           = "p99 ms"
	answered50    = "p50 from the answer ms"
	patch50       = "drifter's PATCH p50 ms"
	rate          = "repairs/s"
	seconds       = "s"
	drifts        = "drifts"
	eventsEach    = "watch events/drift"
	serving50     = "PATCH in the server p50 ms"
	requestsEach  = "requests to the target/repair"
	hubWrites     = "hub writes"
	eventWrites   = "Events"
	strayed       = "unguarded fields changed"
	relapsed      = "relapsed"
	unrepaired    = "unrepaired"
	cpuEach       = "contender's CPU ms/drift"
	serverCPUEach = "server's CPU ms/drift"
	resident      = "resident MiB"
)

// driftsAt returns the number of drifts in a measurement with this concurrency.
func (w *world) driftsAt(concurrency int) int {
	count := w.Drifts
	if concurrency > 1 {
		count *= 4
	}
	switch {
	case w.running == poller: // a second or more for each, but they wait concurrently
		return max(10, count/10)
	case isGitops(w.running):
		return max(10, count/5)
	}
	return count
}

// drift measures drifts with this concurrency.
func (w *world) drift(ctx context.Context, s *set, concurrency int) (sample, error) {
	d, err := w.newDrifter(ctx, s)
	if err != nil {
		return sample{}, err
	}
	// The first ones do not count, because they open connections.
	if err := d.run(ctx, min(20, w.driftsAt(concurrency)), concurrency); err != nil {
		return sample{}, err
	}
	d.stop()
	if d, err = w.newDrifter(ctx, s); err != nil {
		return sample{}, err
	}
	return w.measured(ctx, d, func() error { return d.run(ctx, w.driftsAt(concurrency), concurrency) })
}

// measured measures while a drifter acts, and stops the drifter.
func (w *world) measured(ctx context.Context, d *drifter, act func() error) (sample, error) {
	meter, err := w.meter()
	if err != nil {
		return sample{}, err
	}
	if err := act(); err != nil {
		return sample{}, err
	}
	used, err := meter.read()
	if err != nil {
		return sample{}, err
	}
	// Late writes count, and so does a field that changes back.
	requests, err := w.settle(ctx, meter.mark, user(w.running), d.set)
	if err != nil {
		return sample{}, err
	}
	all, err := meter.read()
	if err != nil {
		return sample{}, err
	}
	d.stop()
	stray, err := d.strayed()
	if err != nil {
		return sample{}, err
	}
	taken := d.sample(used.long)
	count := max(1, taken.Values[drifts])
	taken.Foreign = used.cores(used.foreign)
	taken.Values[requestsEach] = float64(requests.sum("target")) / count
	if len(requests.patching) > 0 {
		taken.Values[serving50] = median(requests.patching)
	}
	taken.Values[hubWrites] = float64(requests.sum("hub patch") + requests.sum("hub update"))
	taken.Values[eventWrites] = float64(requests.sum("event"))
	taken.Values[strayed] = float64(stray)
	taken.Values[cpuEach] = milliseconds(all.contender) / count
	taken.Values[serverCPUEach] = milliseconds(all.server) / count
	if pid := w.pid(); pid != 0 {
		now, err := usage.Of(pid)
		if err != nil {
			return sample{}, err
		}
		taken.Values[resident] = mebibytes(now.Resident)
	}
	return taken, nil
}

// sample returns the drifter's own figures.
func (d *drifter) sample(long time.Duration) sample {
	var life, fromAnswer, patch []float64
	for _, one := range d.closed {
		life = append(life, milliseconds(one.back.Sub(one.seen)))
		fromAnswer = append(fromAnswer, milliseconds(one.back.Sub(one.answered)))
		patch = append(patch, milliseconds(one.answered.Sub(one.sent)))
	}
	count := len(d.closed) + d.unrepaired
	return sample{Values: map[string]float64{
		p50: percentile(life, 50), p90: percentile(life, 90), p99: percentile(life, 99),
		answered50: median(fromAnswer), patch50: median(patch),
		rate: float64(len(d.closed)) / long.Seconds(), seconds: long.Seconds(), drifts: float64(count),
		eventsEach: float64(d.events) / float64(max(1, count)),
		relapsed:   float64(d.relapsed), unrepaired: float64(d.unrepaired),
	}}
}

// driftScenario compares at each concurrency. Contenders that would be far too slow are
// measured at a lower one: one at a time, and the loop over gitops-engine at 16 as
// well.
func (w *world) driftScenario(ctx context.Context, s *set) error {
	for _, concurrency := range w.Concurrency {
		var contenders []string
		for _, contender := range w.Contenders {
			if contender == ours || contender == floorJSON || concurrency == 1 || isGitops(contender) && concurrency <= 16 {
				contenders = append(contenders, contender)
			}
		}
		about := comparison{Scenario: "drift", Concurrency: concurrency, Base: floor, Metric: p50}
		if concurrency > 1 {
			about.Metric, about.Higher = rate, true
		}
		err := w.paired(ctx, about, s, contenders, func(ctx context.Context) (sample, error) { return w.drift(ctx, s, concurrency) })
		if err != nil {
			return fmt.Errorf("drift, %d objects, %d at once: %w", s.size, concurrency, err)
		}
	}
	return nil
}

// stormScenario compares a storm with the API server's time for as many PATCHes, in
// which the bench itself drifts and restores each object.
func (w *world) stormScenario(ctx context.Context, s *set) error {
	const concurrency = 64
	about := comparison{Scenario: "storm", Concurrency: concurrency, Base: nothing, Metric: seconds}
	return w.paired(ctx, about, s, []string{floor, ours}, func(ctx context.Context) (sample, error) {
		d, err := w.newDrifter(ctx, s)
		if err != nil {
			return sample{}, err
		}
		d.patience = 15 * time.Minute
		if w.running != nothing {
			return w.measured(ctx, d, func() error { return d.storm(ctx, concurrency) })
		}
		return w.measured(ctx, d, func() error { return d.bare(ctx, concurrency) })
	})
}

// bare drifts every object, and then restores every one.
func (d *drifter) bare(ctx context.Context, concurrency int) error {
	begun := make([]*drift, d.set.size)
	for _, act := range []func(context.Context, int) error{
		func(ctx context.Context, i int) (err error) {
			begun[i], err = d.begin(ctx, i)
			return err
		},
		func(ctx context.Context, i int) error {
			if err := d.putBack(ctx, i, begun[i].leaf); err != nil {
				return err
			}
			_, err := d.await(ctx, begun[i], nil)
			return err
		},
	} {
		if err := program.Each(ctx, d.set.size, concurrency, act); err != nil {
			return err
		}
	}
	return nil
}

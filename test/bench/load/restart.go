package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/program"
	"github.com/krake-observer/krake-observer/test/usage"
)

// list measures a bare list of the objects, page by page, as JSON that is decoded to
// unstructured trees. No contender that reads each object can be faster.
func (w *world) list(ctx context.Context, s *set) (sample, error) {
	const page = 500 // as in client-go
	meter, err := w.meter()
	if err != nil {
		return sample{}, err
	}
	count, options := 0, metav1.ListOptions{LabelSelector: s.selector(), Limit: page}
	for {
		items, err := w.clients.Dynamic.Resource(s.kind.Resource).List(ctx, options)
		if err != nil {
			return sample{}, err
		}
		count += len(items.Items)
		if options.Continue = items.GetContinue(); options.Continue == "" {
			break
		}
	}
	if count != s.size {
		return sample{}, fmt.Errorf("the list has %d of %d objects", count, s.size)
	}
	used, err := meter.read()
	return sample{Contender: "list", Foreign: used.cores(used.foreign), Values: map[string]float64{seconds: used.long.Seconds()}}, err
}

// restartScenario restarts our agent: once without changes, when it must not write, and
// once after changes to some objects, until all are repaired.
func (w *world) restartScenario(ctx context.Context, s *set) error {
	if err := w.quietRestart(ctx, s); err != nil {
		return err
	}
	about := comparison{Scenario: "restart", Kind: s.kind.Name, Size: s.size, Contender: ours, Base: "list", Metric: seconds}
	for range w.Rounds {
		if err := w.become(ctx, nothing, s); err != nil {
			return err
		}
		before, err := w.list(ctx, s)
		if err != nil {
			return err
		}
		subject, err := w.driftedRestart(ctx, s)
		if err != nil {
			return err
		}
		if err := w.become(ctx, nothing, s); err != nil {
			return err
		}
		after, err := w.list(ctx, s)
		if err != nil {
			return err
		}
		about.Rounds = append(about.Rounds, newRound(before, subject, after, seconds))
	}
	return w.report.compared(about)
}

// driftedRestart measures the time from the start of the process until the objects that
// changed before are repaired.
func (w *world) driftedRestart(ctx context.Context, s *set) (sample, error) {
	d, err := w.newDrifter(ctx, s)
	if err != nil {
		return sample{}, err
	}
	defer d.stop()
	var begun []*drift
	for range min(20, s.size) {
		one, err := d.beginAny(ctx)
		if err != nil {
			return sample{}, err
		}
		begun = append(begun, one)
	}
	meter, err := w.meter()
	if err != nil {
		return sample{}, err
	}
	if err := w.start(ctx, ours, s); err != nil {
		return sample{}, err
	}
	age, err := usage.Age(w.pid())
	if err != nil {
		return sample{}, err
	}
	started := time.Now().Add(-age)
	var last time.Time
	for _, one := range begun {
		if repaired, err := d.await(ctx, one, time.After(10*time.Minute)); err != nil {
			return sample{}, err
		} else if !repaired {
			return sample{}, errors.New("what had drifted before the start is not repaired")
		}
		if one.back.After(last) {
			last = one.back
		}
	}
	used, err := meter.read()
	if err != nil {
		return sample{}, err
	}
	// The meter began before the process.
	taken := sample{Contender: ours, Foreign: used.cores(used.foreign), Values: map[string]float64{seconds: last.Sub(started).Seconds()}}
	return taken, w.quiet(ctx)
}

// quietRestart counts the writes of a restart, and measures its memory.
func (w *world) quietRestart(ctx context.Context, s *set) error {
	if err := w.start(ctx, nothing, s); err != nil {
		return err
	}
	meter, err := w.meter()
	if err != nil {
		return err
	}
	if err := w.start(ctx, ours, s); err != nil {
		return err
	}
	if err := w.quiet(ctx); err != nil {
		return err
	}
	requests, err := w.settle(ctx, meter.mark, oursUser, s)
	if err != nil {
		return err
	}
	peak, settled, err := w.memory(ctx)
	if err != nil {
		return err
	}
	about := fmt.Sprintf("restart, %s, %d objects", s.kind.Name, s.size)
	return w.report.measured(
		figure{Scenario: about, Name: "writes", Value: float64(requests.writes()), Bound: new(0.0), Note: requests.String()},
		figure{Scenario: about, Name: "peak of memory to settled", Value: float64(peak) / float64(settled), Unit: "x", Bound: new(3.0),
			Note: fmt.Sprintf("%.1f and %.1f MiB", mebibytes(peak), mebibytes(settled))},
	)
}

// memory returns the largest resident memory of our agent since its start, and the
// smallest within the next seconds, because garbage does not count.
func (w *world) memory(ctx context.Context) (peak, settled int64, err error) {
	const seconds = 10
	for range seconds {
		now, err := usage.Of(w.pid())
		if err != nil {
			return 0, 0, err
		}
		if settled == 0 || now.Resident < settled {
			settled = now.Resident
		}
		if err := program.Pause(ctx, time.Second); err != nil {
			return 0, 0, err
		}
	}
	peak, err = usage.Peak(w.pid())
	return peak, settled, err
}

// fresh returns the memory of our agent when it has just started, and is idle.
func (w *world) fresh(ctx context.Context, s *set) (int64, error) {
	if err := w.start(ctx, ours, s); err != nil {
		return 0, err
	}
	if err := w.quiet(ctx); err != nil {
		return 0, err
	}
	_, settled, err := w.memory(ctx)
	return settled, err
}

// base measures the memory of an agent without Applications.
func (w *world) base(ctx context.Context, s *set) error {
	settled, err := w.fresh(ctx, s)
	if err != nil {
		return err
	}
	return w.report.measured(figure{Scenario: "memory", Name: "base: no Applications", Value: mebibytes(settled), Unit: "MiB", Bound: new(45.0)})
}

// memoryScenario measures the memory of an agent that has just started, at each size. The
// smallest and the largest size determine the cost of an object.
func (w *world) memoryScenario(ctx context.Context, s *set) error {
	if err := w.start(ctx, nothing, s); err != nil {
		return err
	}
	settled, err := w.fresh(ctx, s)
	if err != nil {
		return err
	}
	// The profile comes last, because it begins with a garbage collection.
	rest := func() (sample, error) { return sample{}, program.Pause(ctx, time.Second) }
	if _, err := w.profiled(fmt.Sprintf("memory-%s-%d", s.kind.Name, s.size), rest); err != nil {
		return err
	}
	if w.settled == nil {
		w.settled = map[int]int64{}
	}
	w.settled[s.size] = settled
	figures := []figure{{Scenario: "memory", Name: fmt.Sprintf("%d %ss", s.size, s.kind.Name), Value: mebibytes(settled), Unit: "MiB"}}
	if least := w.Sizes[0]; s.size > least && w.settled[least] > 0 {
		const enough = 5000 // with fewer objects, garbage dominates
		each := float64(settled-w.settled[least]) / float64(s.size-least) / (1 << 10)
		one := figure{
			Scenario: "memory", Name: fmt.Sprintf("a %s, by %d beside %d", s.kind.Name, s.size, least), Value: each, Unit: "KiB",
			Note: "with its part of the Application",
		}
		if s.size-least >= enough {
			one.Bound = new(1.2)
		}
		figures = append(figures, one)
	}
	return w.report.measured(figures...)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/installation"
)

// scenario is a measurement: with the many objects of each kind, at each size or at the
// last one, or in a separate cluster.
type scenario struct {
	name           string
	every, isApart bool
	only           string // the kind that it needs, empty for any
	measure        func(*world, context.Context, *set) error
	installedApart installation.Options
}

// scenarios are in order: of those with the same objects, the last change the cluster for good.
func scenarios() []scenario {
	return []scenario{
		{name: "memory", every: true, measure: (*world).memoryScenario},
		{name: "drift", every: true, measure: (*world).driftScenario},
		{name: "restart", measure: (*world).restartScenario},
		{name: "idle", measure: (*world).idleScenario},
		{name: "storm", measure: (*world).stormScenario},
		{name: "foreign", only: "deployment", measure: (*world).foreignScenario},
		{name: "rollout", isApart: true, measure: (*world).rolloutScenario},
		{name: "admission", isApart: true, measure: (*world).admissionScenario, installedApart: installation.Options{WebhookArgs: []string{"--dry-run-timeout=0"}}},
		{name: "policies", isApart: true, measure: (*world).policiesScenario},
	}
}

func scenarioNames() (names []string) {
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

func run(ctx context.Context, options Options, out, log io.Writer) error {
	r := &report{out: out}
	fmt.Fprint(out, units)
	for _, kind := range options.Kinds {
		if err := runKind(ctx, options, workload.KindOf(kind), r, log); err != nil {
			return err
		}
	}
	for _, s := range options.chosen(func(s scenario) bool { return s.isApart }) {
		err := with(ctx, options, s.installedApart, r, log, func(w *world) error { return w.perform(ctx, s, nil) })
		if err != nil {
			return err
		}
	}
	return errors.Join(r.wrong...)
}

// chosen returns the scenarios that the user has chosen, in order.
func (o Options) chosen(is func(scenario) bool) (chosen []scenario) {
	for _, s := range scenarios() {
		if is(s) && slices.Contains(o.Scenarios, s.name) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// with starts a cluster, and stops it.
func with(ctx context.Context, options Options, in installation.Options, r *report, log io.Writer, do func(*world) error) error {
	w, err := open(ctx, options, in, r, log)
	if err != nil {
		return err
	}
	return errors.Join(do(w), w.close())
}

// runKind measures all sizes in one growing cluster.
func runKind(ctx context.Context, options Options, kind workload.Kind, r *report, log io.Writer) error {
	last := options.chosen(func(s scenario) bool { return !s.isApart && (s.only == "" || s.only == kind.Name) })
	every := slices.DeleteFunc(slices.Clone(last), func(s scenario) bool { return !s.every })
	sizes := options.Sizes
	if len(every) == 0 {
		sizes = sizes[len(sizes)-1:]
	}
	if len(last) == 0 {
		return nil
	}
	return with(ctx, options, installation.Options{}, r, log, func(w *world) error {
		s := &set{name: "many", kind: kind, perApplication: options.PerApplication}
		for i, size := range sizes {
			if err := w.populate(ctx, s, size); err != nil {
				return fmt.Errorf("make %d objects: %w", size, err)
			}
			acts := every
			if i == len(sizes)-1 {
				acts = last
			}
			for _, act := range acts {
				if err := w.perform(ctx, act, s); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (w *world) perform(ctx context.Context, act scenario, s *set) error {
	if err := act.measure(w, ctx, s); err != nil {
		return fmt.Errorf("%s: %w", act.name, err)
	}
	return nil
}

// rounds measures each contender in each round. Every second round has the opposite order, because the API server becomes quicker
// or slower with time.
func (w *world) rounds(ctx context.Context, name string, s *set, contenders []string, measure func(context.Context) (sample, error)) error {
	for round := range w.Rounds {
		order := slices.Clone(contenders)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, contender := range order {
			fmt.Fprintf(w.log, "load: %s, round %d of %d: %s\n", name, round+1, w.Rounds, contender)
			if err := w.become(ctx, contender, s); err != nil {
				return err
			}
			taken, err := measure(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", contender, err)
			}
			w.report.add(s.about(name), contender, taken)
		}
	}
	return nil
}

// populate creates objects up to this number, with Applications that our agent has
// carried out, and reports how long that took.
func (w *world) populate(ctx context.Context, s *set, size int) error {
	before := s.size
	if err := w.grow(ctx, s, size); err != nil {
		return err
	}
	took, err := w.carryOut(ctx, s)
	if err == nil {
		w.report.add(s.about("ColdStart"), ours, sample{"s": took.Seconds(), "objects/s": float64(s.size-before) / took.Seconds()})
	}
	return err
}

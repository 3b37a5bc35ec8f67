package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/test/bench/workload"
)

// scenario is a measurement: with the many objects of each kind, at each size or at the
// last one, or in a separate cluster.
type scenario struct {
	everySize, lastSize, apart func(*world, context.Context, *set) error
	// only is the kind that it needs, empty for any.
	only string
}

func scenarios() map[string]scenario {
	return map[string]scenario{
		"drift":     {everySize: (*world).driftScenario},
		"memory":    {everySize: (*world).memoryScenario},
		"storm":     {lastSize: (*world).stormScenario},
		"restart":   {lastSize: (*world).restartScenario},
		"idle":      {lastSize: (*world).idleScenario},
		"harm":      {lastSize: (*world).harmScenario},
		"churn":     {lastSize: (*world).churnScenario, only: "deployment"},
		"unrelated": {lastSize: (*world).unrelatedScenario, only: "configmap"},
		"foreign":   {lastSize: (*world).foreignScenario, only: "deployment"},
		"fleet":     {apart: (*world).fleetScenario},
		"rollout":   {apart: (*world).rolloutScenario},
		"wide":      {apart: (*world).wideScenario},
		"deep":      {apart: (*world).deepScenario},
	}
}

// order is the order of scenarios with the same objects: those that change the cluster
// for good come last.
func order() []string {
	return []string{"memory", "drift", "restart", "idle", "harm", "storm", "churn", "unrelated", "foreign", "wide", "deep", "fleet", "rollout"}
}

func run(ctx context.Context, options Options, out, log io.Writer) (err error) {
	var r *report
	if options.From != "" {
		r, err = load(options.From, out)
	} else {
		r, err = measure(ctx, options, out, log)
	}
	if err != nil {
		return err
	}
	for _, f := range r.derived() {
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", f.Scenario, f.Name, f.text(), f.bound())
	}
	if options.Markdown != "" {
		if err := os.WriteFile(options.Markdown, []byte(r.tables()), 0o644); err != nil {
			return err
		}
	}
	if err := r.plot(options.Plots); err != nil {
		return err
	}
	if options.Strict {
		return r.broken()
	}
	return r.wrong()
}

// measure runs the chosen scenarios.
func measure(ctx context.Context, options Options, out, log io.Writer) (*report, error) {
	r := &report{Began: time.Now(), Processors: runtime.NumCPU(), Command: os.Args[1:], out: out, json: options.JSON}
	for _, name := range options.Kinds {
		if err := runKind(ctx, options, workload.Kinds()[name], r, log); err != nil {
			return nil, err
		}
	}
	for _, name := range order() {
		if act := scenarios()[name].apart; act != nil && slices.Contains(options.Scenarios, name) {
			if err := runApart(ctx, options, name, act, r, log); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// runKind measures all sizes in one growing cluster.
func runKind(ctx context.Context, options Options, kind workload.Kind, r *report, log io.Writer) (err error) {
	every := options.chosen(kind.Name, func(s scenario) func(*world, context.Context, *set) error { return s.everySize })
	last := options.chosen(kind.Name, func(s scenario) func(*world, context.Context, *set) error { return s.lastSize })
	sizes := options.Sizes
	if len(every) == 0 {
		sizes = sizes[len(sizes)-1:]
	}
	if len(every)+len(last) == 0 {
		return nil
	}
	w, err := open(ctx, options, r, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	s := &set{name: "many", kind: kind, perApplication: options.PerApplication}
	if slices.Contains(options.Scenarios, "memory") {
		if err := w.base(ctx, s); err != nil {
			return err
		}
	}
	for i, size := range sizes {
		if err := w.populate(ctx, s, size); err != nil {
			return fmt.Errorf("make %d objects: %w", size, err)
		}
		acts := every
		if i == len(sizes)-1 {
			acts = append(slices.Clone(every), last...)
		}
		for _, act := range acts {
			if err := w.perform(ctx, act, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// act is a scenario with its name.
type act struct {
	name string
	do   func(*world, context.Context, *set) error
}

// chosen returns the scenarios of a kind that the user has chosen, in order.
func (o Options) chosen(kind string, part func(scenario) func(*world, context.Context, *set) error) []act {
	var acts []act
	for _, name := range order() {
		s := scenarios()[name]
		if do := part(s); do != nil && slices.Contains(o.Scenarios, name) && (s.only == "" || s.only == kind) {
			acts = append(acts, act{name, do})
		}
	}
	return acts
}

func runApart(ctx context.Context, options Options, name string, do func(*world, context.Context, *set) error, r *report, log io.Writer) (err error) {
	w, err := open(ctx, options, r, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	return w.perform(ctx, act{name, do}, nil)
}

func (w *world) perform(ctx context.Context, a act, s *set) error {
	fmt.Fprintf(w.log, "load: %s\n", a.name)
	if err := a.do(w, ctx, s); err != nil {
		return fmt.Errorf("%s: %w", a.name, err)
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
	if err != nil {
		return err
	}
	return w.report.measured(figure{
		Scenario: "cold start", Name: fmt.Sprintf("%d %ss more, in %d Applications", s.size-before, s.kind.Name, (s.size-before)/s.perApplication),
		Value: took.Seconds(), Unit: "s", Note: fmt.Sprintf("%.0f objects/s", float64(s.size-before)/took.Seconds()),
	})
}

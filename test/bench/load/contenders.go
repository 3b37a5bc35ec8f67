package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/program"
)

// The contenders.
const (
	// ours is cmd/agent, with the shipped rights, and former that of another checkout.
	ours   = "ours"
	former = "former"
	// floor is test/bench/floor, and gitops is test/bench/gitops.
	floor  = "floor"
	gitops = "gitops"
	// nothing guards nothing.
	nothing = "nothing"
)

// subjects are the contenders that are compared with the floor.
func subjects() []string { return []string{ours, former, gitops} }

func isOurs(contender string) bool { return contender == ours || contender == former }

// agents returns our agents that are to be measured.
func (w *world) agents() []string {
	return slices.DeleteFunc(slices.Clone(w.Contenders), func(c string) bool { return !isOurs(c) })
}

// become makes a contender the only one that guards the set, and returns when it is
// idle.
func (w *world) become(ctx context.Context, contender string, s *set) error {
	if w.running == contender && (w.guarded == s || isOurs(contender) || contender == nothing) {
		return nil
	}
	if err := w.start(ctx, contender, s); err != nil {
		return err
	}
	if contender == nothing {
		return nil
	}
	if err := w.probe(ctx, s); err != nil {
		return fmt.Errorf("wait until %s guards %s: %w", contender, s.name, err)
	}
	return w.quiet(ctx)
}

// start stops every other contender, and starts this one.
func (w *world) start(ctx context.Context, contender string, s *set) (err error) {
	if err := w.stop(); err != nil {
		return err
	}
	arguments := []string{"--kubeconfig", w.kubeconfig, "--kind", s.kind.Name, "--set", s.name}
	switch contender {
	case nothing:
		return nil
	case ours, former:
		w.running = contender
		return errors.Join(w.use(contender), w.ours.StartAgent(ctx))
	case gitops:
		arguments = append(arguments, "--per-application", strconv.Itoa(s.perApplication))
	}
	w.process, err = w.cluster.Run(contender, exec.Command(w.program(contender), arguments...))
	w.running, w.guarded = contender, s
	return err
}

func (w *world) stop() error {
	was := w.running
	w.running, w.guarded = nothing, nil
	switch {
	case was == nothing:
		return nil
	case isOurs(was):
		return w.ours.StopAgent()
	}
	return w.process.Stop()
}

// pid returns the process of the running contender, 0 for none.
func (w *world) pid() int {
	switch {
	case w.running == nothing:
		return 0
	case isOurs(w.running):
		return w.ours.AgentProcess(0).PID()
	}
	return w.process.PID()
}

// user returns the contender's user name at the API server.
func user(contender string) string {
	if isOurs(contender) {
		return kit.LocalAgent
	}
	return contendersUser
}

// probe drifts an object and waits until it is repaired.
func (w *world) probe(ctx context.Context, s *set) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Minute, errors.New("a drift is not repaired"))
	defer cancel()
	for {
		d, err := w.newDrifter(ctx, s)
		if err != nil {
			return err
		}
		err = d.run(ctx, 1, 1)
		d.stop()
		if err != nil {
			return err
		}
		if d.unrepaired == 0 {
			return nil
		}
	}
}

// quiet waits until the running contender has no more work.
func (w *world) quiet(ctx context.Context) error {
	const (
		step, enough, most = 500 * time.Millisecond, 4, 240
		little             = 20 * time.Millisecond
	)
	if w.running == nothing {
		return nil
	}
	before, err := usageOf(w.pid())
	if err != nil {
		return err
	}
	for calm, steps := 0, 0; calm < enough && steps < most; steps++ {
		if err := program.Pause(ctx, step); err != nil {
			return err
		}
		now, err := usageOf(w.pid())
		if err != nil {
			return err
		}
		calm++
		if now.cpu-before.cpu > little {
			calm = 0
		}
		before = now
	}
	return nil
}

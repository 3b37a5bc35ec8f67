package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/krake-observer/krake-observer/test/program"
	"github.com/krake-observer/krake-observer/test/usage"
)

// The contenders.
const (
	// ours is cmd/agent, with the shipped rights.
	ours = "ours"
	// floor is test/bench/floor with the API server's protobuf, floorJSON the same with
	// JSON. poller reads each object every two seconds instead.
	floor     = "floor"
	floorJSON = "floor-json"
	poller    = "poller"
	// gitops is test/bench/gitops. The same with another number of objects in an Application, and with
	// gitops-engine's own Sync in place of a loop of ours.
	gitops     = "gitops"
	gitops100  = "gitops-100"
	gitops1000 = "gitops-1000"
	gitopsSync = "gitops-sync"
	// nothing guards nothing, decoder only decodes the events to unstructured trees.
	nothing = "nothing"
	decoder = "decoder"
)

// subjects are the contenders that are compared with the floor.
func subjects() []string {
	return []string{ours, floorJSON, gitops, gitops100, gitops1000, gitopsSync, poller}
}

// has reports whether a contender is to be measured.
func (w *world) has(contender string) bool { return slices.Contains(w.Contenders, contender) }

// isGitops reports whether a contender is test/bench/gitops.
func isGitops(contender string) bool { return strings.HasPrefix(contender, gitops) }

// become makes a contender the only one that guards the set, and returns when it is
// idle.
func (w *world) become(ctx context.Context, contender string, s *set) error {
	if w.running == contender && (w.guarded == s || contender == ours || contender == nothing) {
		return nil
	}
	if err := w.start(ctx, contender, s); err != nil {
		return err
	}
	if contender == nothing {
		return nil
	}
	if contender != decoder {
		if err := w.probe(ctx, s); err != nil {
			return fmt.Errorf("wait until %s guards %s: %w", contender, s.name, err)
		}
	}
	return w.quiet(ctx)
}

// start stops every other contender, and starts this one.
func (w *world) start(ctx context.Context, contender string, s *set) (err error) {
	if err := w.stop(); err != nil {
		return err
	}
	arguments := []string{"--kubeconfig", w.kubeconfig, "--kind", s.kind.Name, "--set", s.name}
	name := "floor"
	switch contender {
	case nothing:
		return nil
	case ours:
		w.running = ours
		return w.ours.StartAgent(ctx)
	case gitops, gitopsSync, gitops100, gitops1000:
		name = "gitops"
		size := map[string]int{gitops100: 100, gitops1000: 1000}[contender]
		arguments = append(arguments, "--per-application", strconv.Itoa(cmp.Or(size, s.perApplication)), "--engine-sync="+strconv.FormatBool(contender == gitopsSync))
	case poller:
		arguments = append(arguments, "--poll", "2s", "--encoding", "json")
	case floorJSON:
		arguments = append(arguments, "--encoding", "json")
	case decoder:
		arguments = append(arguments, "--only-decode")
	}
	w.process, err = w.cluster.Run(contender, exec.Command(filepath.Join(w.programs, name), arguments...))
	w.running, w.guarded = contender, s
	return err
}

func (w *world) stop() error {
	was := w.running
	w.running, w.guarded = nothing, nil
	switch was {
	case nothing:
		return nil
	case ours:
		return w.ours.StopAgent()
	}
	return w.process.Stop()
}

// pid returns the process of the running contender, 0 for none.
func (w *world) pid() int {
	switch w.running {
	case nothing:
		return 0
	case ours:
		return w.ours.AgentProcess(0).PID()
	}
	return w.process.PID()
}

// user returns the contender's user name at the API server.
func user(contender string) string {
	if contender == ours {
		return oursUser
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

// quiet waits until the running contender has no more work, which a poller always has.
func (w *world) quiet(ctx context.Context) error {
	const (
		step, enough, most = 500 * time.Millisecond, 4, 240
		little             = 20 * time.Millisecond
	)
	if w.running == nothing || w.running == poller {
		return nil
	}
	before, err := usage.Of(w.pid())
	if err != nil {
		return err
	}
	for calm, steps := 0, 0; calm < enough && steps < most; steps++ {
		if err := program.Pause(ctx, step); err != nil {
			return err
		}
		now, err := usage.Of(w.pid())
		if err != nil {
			return err
		}
		calm++
		if now.CPU-before.CPU > little {
			calm = 0
		}
		before = now
	}
	return nil
}

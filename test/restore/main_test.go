package restore

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// env is a hub with its own agent, and the cluster east with another one.
var env struct {
	hub, east    *kit.Plane
	installation *installation.Installation
	agent        *installation.Spoke
}

func TestMain(m *testing.M) {
	kit.Suite{Name: "restore", Start: func(ctx context.Context) error {
		if testing.Short() {
			return nil // all tests are long
		}
		return start(ctx)
	}, Logs: func() []string { return append(env.installation.Logs(), env.agent.Log()) }, Stop: stop}.Main(m)
}

func start(ctx context.Context) (err error) {
	for _, plane := range []**kit.Plane{&env.hub, &env.east} {
		if *plane, err = kit.StartPlane(ctx, cluster.Options{}); err != nil {
			return err
		}
	}
	// The snapshot is restored before an agent renews its Lease on the hub, so that the Lease shows nothing,
	// and the resync has to.
	agent := []string{"--resync-period=20s"}
	options := installation.Options{Overlay: "habitat", Habitats: 1, AgentArgs: agent}
	if env.installation, err = installation.InstallWith(ctx, env.hub.Cluster, options, os.Stderr); err != nil {
		return err
	}
	if env.agent, err = env.installation.Enrol(ctx, env.east.Cluster, installation.Enrolment{Name: "east", AgentArgs: agent}); err != nil {
		return err
	}
	return env.agent.Start(ctx)
}

// respawn starts agents again that have ended, as a kubelet does, until the test ends.
func respawn(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	again := func(process func() *cluster.Process, kill func() error, start func(context.Context) error) {
		watching.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
					return
				case <-process().Exited():
				}
				if err := errors.Join(kill(), start(ctx)); err != nil && ctx.Err() == nil {
					t.Errorf("start a process again: %v", err)
					return
				}
				t.Log("a process has ended, and was started again")
			}
		})
	}
	i := env.installation
	again(func() *cluster.Process { return i.AgentProcess(0) }, func() error { return i.KillAgent() }, i.StartAgent)
	again(func() *cluster.Process { return i.HabitatController(0) }, func() error { return i.KillHabitat() }, i.StartHabitat)
	again(env.agent.Process, env.agent.Kill, env.agent.Start)
}

func stop() error {
	var failures []error
	if env.installation != nil { // they wait for API servers that would end before them
		failures = append(failures, env.installation.KillAgent(), env.installation.KillHabitat(), env.installation.KillWebhook())
	}
	if env.agent != nil {
		failures = append(failures, env.agent.Kill())
	}
	for _, plane := range []*kit.Plane{env.hub, env.east} {
		if plane != nil {
			failures = append(failures, plane.Stop())
		}
	}
	return errors.Join(failures...)
}

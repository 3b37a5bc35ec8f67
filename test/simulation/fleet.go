package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/simulation/target"
)

// spoke is a cluster in memory, and how its agent reaches the hub.
type spoke struct {
	name   string
	target *target.Server
	hub    *rest.Config
}

// enrolSpoke makes a cluster, as an administrator does, but that what its agent
// needs is handed over in a folder.
func enrolSpoke(ctx context.Context, name, kubeconfig, folder string) (*spoke, error) {
	options := enrol.Options{
		Hub: enrol.Connection{Kubeconfig: kubeconfig}, Cluster: name, TokenDuration: 24 * time.Hour, Out: filepath.Join(folder, name),
	}
	if err := enrol.Enrol(ctx, options, io.Discard); err != nil {
		return nil, fmt.Errorf("enrol %s: %w", name, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(options.Out, "agent", "kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // as the command has it
	// client-go shares connections between clients of the same authority. Each agent
	// is to have its own.
	config.CAData = bytes.Join([][]byte{config.CAData, []byte(name), nil}, []byte("\n"))
	s := &spoke{name: name, target: target.New(), hub: rest.AddUserAgent(config, "krake-agent")}
	s.target.AddNamespace(application.AgentsNamespace)
	s.target.AddNamespace(name)
	return s, nil
}

// options are those of the agent, as the flags have them.
func (s *spoke) options() (agent.Options, error) {
	var options agent.Options
	flags := pflag.NewFlagSet(s.name, pflag.ContinueOnError)
	options.AddFlags(flags)
	err := flags.Parse([]string{
		"--cluster", s.name, "--hub-namespaces", s.name, "--metrics-bind-address", "0", "--health-probe-bind-address", "0",
	})
	return options, errors.Join(err, options.Validate())
}

// run runs the agent.
func (s *spoke) run(ctx context.Context, logger logr.Logger) error {
	options, err := s.options()
	if err != nil {
		return err
	}
	err = agent.RunWith(ctx, options, agent.Configs{Hub: s.hub, Target: s.target.Config(), Logger: logger.WithValues("cluster", s.name)})
	if err != nil {
		return fmt.Errorf("agent of %s: %w", s.name, err)
	}
	return nil
}

// fleet are all clusters, and their agents while they run.
type fleet struct {
	spokes []*spoke
	logger logr.Logger
	// fail is told why an agent has ended by itself.
	fail context.CancelCauseFunc

	stop    context.CancelFunc // nil while no agent runs
	running sync.WaitGroup
}

// enrol makes so many clusters.
func (f *fleet) enrol(ctx context.Context, clusters int, kubeconfig, folder string) error {
	spokes := make([]*spoke, clusters)
	err := each(ctx, clusters, func(ctx context.Context, i int) (err error) {
		spokes[i], err = enrolSpoke(ctx, clusterOf(i), kubeconfig, folder)
		return err
	})
	f.spokes = spokes
	return err
}

// start starts all agents.
func (f *fleet) start(ctx context.Context) {
	ctx, f.stop = context.WithCancel(ctx)
	for _, s := range f.spokes {
		f.running.Go(func() {
			if err := s.run(ctx, f.logger); err != nil {
				f.fail(err)
			}
		})
	}
}

// halt ends all agents, and waits for them.
func (f *fleet) halt() {
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
	f.running.Wait()
}

// requests are those to all clusters.
func (f *fleet) requests() counts {
	sum := counts{}
	for _, s := range f.spokes {
		for what, number := range s.target.Requests() {
			sum[what] += float64(number)
		}
	}
	return sum
}

// drift changes an object at a time, in turn through all clusters, so many in a
// minute, and gives how long each took to be repaired. What is not repaired in time
// is an error.
func (f *fleet) drift(ctx context.Context, applications int, perMinute float64, long time.Duration) ([]time.Duration, error) {
	const patience = 30 * time.Second
	tick := time.NewTicker(time.Duration(float64(time.Minute) / perMinute))
	defer tick.Stop()
	end := time.After(long)
	var mu sync.Mutex
	var took []time.Duration
	group, ctx := errgroup.WithContext(ctx)
	for i := 0; ; i++ {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			one, err := f.repaired(ctx, i%applications)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, one)
			return err
		})
		select {
		case <-tick.C:
			continue
		case <-end:
		case <-ctx.Done():
		}
		err := group.Wait()
		slices.Sort(took)
		return took, err
	}
}

// repaired changes the object of an Application and waits until its agent has
// changed it back.
func (f *fleet) repaired(ctx context.Context, i int) (time.Duration, error) {
	s := f.spokes[i%len(f.spokes)]
	start := time.Now()
	if err := s.target.Change(resourceOf(i), s.name, nameOf(i), change); err != nil {
		return 0, err
	}
	err := s.target.Await(ctx, resourceOf(i), s.name, nameOf(i), isWanted)
	return time.Since(start), err
}

// heap is how much memory of this process is in use, of what is no garbage.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what only finalizers held
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse) //nolint:gosec // less than all memory there is
}

// Simulation measures what a hub bears that has many clusters. The hub is a real
// API server with the real webhook and the shipped policies, and each cluster is
// enrolled there as by kubectl-krake: it has an identity, a token and a namespace of
// its own. The agents are the real ones, all in this process. Their clusters are
// namespaces of a second API server. Run it from the root of the repository:
//
//	go run ./test/simulation
//	go run ./test/simulation --clusters 5 --applications 100 --idle 30s --drift 30s
//
// The agents start and find nothing to do; then the Applications are created, each
// of one object; then nobody does anything for a while; then somebody changes one
// object of a hundred in each minute, and each is repaired; then all agents end and
// start again at the same time. At the end, without agents, it measures what a write
// and a list cost the hub for so many watches: as each cluster has a namespace of
// its own, and as it would be if all were to read in all namespaces.
//
// It prints what it has measured, and exits with 1 if agents without work do more
// than to tell that they live and to compare lists, if a drift is not repaired, or
// if agents that start again write anything but their Leases.
//
// Requests, watches and events are counted by the metrics of the API server, of
// which is taken off what it does without agents. CPU and memory of its processes
// are those that the kernel tells.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/program"
)

func main() {
	options := new(Options)
	program.Main("simulation", options, func(ctx context.Context) error { return run(ctx, *options, os.Stdout, os.Stderr) })
}

// Options are what the user can choose.
type Options struct {
	Clusters     int
	Applications int
	Idle         time.Duration
	Drift        time.Duration
	// PerMinute is how much of the objects changes in a minute, in percent.
	PerMinute float64
	// Writes is how many are measured in each layout.
	Writes int
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.Clusters, "clusters", 200, "how many clusters, of one agent each")
	flags.IntVar(&o.Applications, "applications", 20_000, "how many Applications in all, of one object each")
	flags.DurationVar(&o.Idle, "idle", 5*time.Minute, "how long nothing happens")
	flags.DurationVar(&o.Drift, "drift", 5*time.Minute, "how long objects are changed by somebody else")
	flags.Float64Var(&o.PerMinute, "per-minute", 1, "how many of the objects are changed in a minute, in percent")
	flags.IntVar(&o.Writes, "writes", 2000, "how many writes to measure in each layout")
}

// Validate tells what cannot be used.
func (o *Options) Validate() error {
	var failures []error
	if o.Clusters < 1 {
		failures = append(failures, errors.New("--clusters: there must be one"))
	}
	if o.Applications < o.Clusters {
		failures = append(failures, errors.New("--applications: there must be one for each cluster"))
	}
	if o.Idle < time.Second || o.Drift < time.Second {
		failures = append(failures, errors.New("--idle, --drift: must be at least 1s"))
	}
	if o.PerMinute <= 0 {
		failures = append(failures, errors.New("--per-minute: must be more than 0"))
	}
	if o.Writes < 1 {
		failures = append(failures, errors.New("--writes: there must be one"))
	}
	return errors.Join(failures...)
}

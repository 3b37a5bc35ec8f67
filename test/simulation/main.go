// Simulation measures the load of a hub with many clusters. The hub is a real API
// server with the real webhook and the shipped policies. Each cluster is enrolled there
// as by kubectl-krake, with its own identity, token and namespace. The agents are real,
// and all in this process. Their clusters are namespaces of a second API server. Run it
// from the root of the repository:
//
//	go run ./test/simulation
//	go run ./test/simulation --clusters 5 --applications 100 --idle 30s --drift 30s
//
// The simulation has these steps:
//
//   - the agents start without Applications;
//   - the Applications are created, each of one object;
//   - nothing changes for a while;
//   - one in a hundred objects changes each minute, and each is repaired;
//   - all agents end, and start again at the same time;
//   - without agents, it measures the hub's cost of a write and a list for this many
//     watches. It does so with a namespace for each cluster, and with watches of all
//     namespaces.
//
// It prints the measurements. It exits with 1 if agents without work do more than renew
// their Leases and compare lists. It does so as well if a drift is not repaired, or if
// restarted agents write anything except their Leases.
//
// The metrics of the API server count requests, watches and events; its own requests
// without agents are subtracted. The kernel measures CPU and memory of the processes.
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

// Options are the user's options.
type Options struct {
	Clusters     int
	Applications int
	Idle         time.Duration
	Drift        time.Duration
	// PerMinute is the part of the objects that changes in a minute, in percent.
	PerMinute float64
	// Writes is the number of measured writes in each layout.
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

// Validate returns an error for unusable options.
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

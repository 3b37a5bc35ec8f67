// Package agent wires the agent of one cluster: the store of Applications, the
// observers, the loop, leader election, events and health.
package agent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/krake-observer/krake-observer/internal/options"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// Options of the agent.
type Options struct {
	Connection options.Connection
	Logging    options.Logging
	Reach      options.Reach

	// Cluster is the name by which Applications choose this agent's cluster.
	Cluster string
	// Namespace is where the agent runs and keeps its Lease.
	Namespace string
	// Concurrency is how many Applications are worked on at once.
	Concurrency int
	LeaderElect bool
	// HealthAddress and MetricsAddress are where to listen; "0" is nowhere.
	HealthAddress  string
	MetricsAddress string
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Connection.AddFlags(flags)
	o.Logging.AddFlags(flags)
	o.Reach.AddFlags(flags)
	flags.StringVar(&o.Cluster, "cluster", application.LocalCluster, "name of the cluster whose Applications to carry out")
	flags.StringVar(&o.Namespace, "namespace", "krake-agents", "namespace of the agent's Lease")
	flags.IntVar(&o.Concurrency, "concurrency", 8, "how many Applications are worked on at once")
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "act only while holding the Lease, so that several replicas can run")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", `where to answer /healthz and /readyz; "0": nowhere`)
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", "0", `where to serve /metrics; "0": nowhere`)
}

// Validate reports every flag that cannot be used.
func (o *Options) Validate() error {
	failures := []error{o.Logging.Validate(), o.Reach.Validate()}
	if problems := validation.IsDNS1123Label(o.Cluster); len(problems) > 0 {
		failures = append(failures, fmt.Errorf("--cluster: %q: %s", o.Cluster, strings.Join(problems, ", ")))
	}
	if o.Namespace == "" {
		failures = append(failures, errors.New("--namespace: must not be empty"))
	}
	if o.Concurrency < 1 {
		failures = append(failures, errors.New("--concurrency: must be at least 1"))
	}
	return errors.Join(failures...)
}

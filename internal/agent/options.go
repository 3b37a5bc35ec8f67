package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/krake-observer/krake-observer/internal/agent/sources"
	"github.com/krake-observer/krake-observer/internal/options"
	"github.com/krake-observer/krake-observer/internal/reach"
	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// leastResync keeps the resync from becoming a poll.
const leastResync = time.Second

// Options of the agent.
type Options struct {
	// Connection is that to the target, where the objects are.
	Connection options.Connection
	Logging    options.Logging
	Reach      reach.Options
	Metrics    options.Metrics
	Lease      right.LeaseOptions
	Namespaces Namespaces
	Hooks      Hooks
	Sources    sources.Options
	Habitat    Habitat

	// HubKubeconfig is a file that says how to reach the hub, where the
	// Applications are; empty: the hub is the target.
	HubKubeconfig string
	// RequireServiceAccount has every write to the target made as the
	// Application's ServiceAccount there: strict mode.
	RequireServiceAccount bool
	// Cluster is the name by which Applications choose this agent's cluster.
	Cluster string
	// Namespace is where the agent runs and keeps its Lease on the target.
	Namespace string
	// Concurrency is how many Applications the loop passes over at once.
	Concurrency int
	// MaxHold bounds a hold on one object, from when it is first seen.
	MaxHold time.Duration
	// Resync is the interval in which the caches are compared with the API servers; 0 is
	// never.
	Resync time.Duration
	// HealthAddress is where to listen; "0" is nowhere.
	HealthAddress string
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Connection.AddFlags(flags)
	o.Logging.AddFlags(flags)
	o.Reach.AddFlags(flags)
	o.Metrics.AddFlags(flags, ":8443")
	o.Lease.AddFlags(flags)
	o.Namespaces.addFlags(flags)
	o.Hooks.addFlags(flags)
	o.Sources.AddFlags(flags)
	o.Habitat.addFlags(flags)
	flags.StringVar(&o.HubKubeconfig, "hub-kubeconfig", "", "file that says how to reach the hub, where the Applications are (default: the hub is the cluster of --kubeconfig)")
	flags.BoolVar(&o.RequireServiceAccount, "require-service-account", false,
		"strict mode: write to the cluster as the ServiceAccount of the Application only, "+application.DefaultServiceAccount+" if the annotation "+application.ServiceAccountAnnotation+" names none")
	flags.StringVar(&o.Cluster, "cluster", application.LocalCluster, "name of the cluster whose Applications to carry out")
	flags.StringVar(&o.Namespace, "namespace", "krake-agents", "namespace of the agent's Lease, on the cluster where it runs")
	flags.IntVar(&o.Concurrency, "concurrency", 8, "how many Applications are worked on at once")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", `where to answer /healthz and /readyz; "0": nowhere`)
	flags.DurationVar(&o.MaxHold, "max-hold", 4*time.Hour, "how long at most an object may be held by the annotation "+application.HoldUntilAnnotation+"; 0: not at all")
	flags.DurationVar(&o.Resync, "resync", 10*time.Minute, "how often, about, to compare what is known of the objects with a list of their metadata, in case a watch is mute; 0: never")
}

// Validate reports every flag that cannot be used.
func (o *Options) Validate() error {
	failures := []error{o.Logging.Validate(), o.Reach.Validate(), o.Lease.Validate(), o.Namespaces.validate(), o.Hooks.validate(), o.Sources.Validate(o.RequireServiceAccount), o.validateHabitat(), o.Habitat.validate()}
	if problems := validation.IsDNS1123Label(o.Cluster); len(problems) > 0 {
		failures = append(failures, fmt.Errorf("--cluster: %q: %s", o.Cluster, strings.Join(problems, ", ")))
	}
	if o.Namespace == "" {
		failures = append(failures, errors.New("--namespace: must not be empty"))
	}
	if o.Concurrency < 1 {
		failures = append(failures, errors.New("--concurrency: must be at least 1"))
	}
	if o.MaxHold < 0 {
		failures = append(failures, errors.New("--max-hold: must not be negative"))
	}
	if o.Reach.Scope == mutate.ClusterScope && o.HubKubeconfig != "" && !o.RequireServiceAccount {
		failures = append(failures, errors.New("--scope=cluster with --hub-kubeconfig: whoever writes to the hub would own this cluster: add --require-service-account"))
	}
	if o.Resync != 0 && o.Resync < leastResync {
		failures = append(failures, fmt.Errorf("--resync: must be 0 or at least %s", leastResync))
	}
	return errors.Join(failures...)
}

// validateHabitat refuses the flags of the agent, which would have no effect on Habitats.
func (o *Options) validateHabitat() error {
	if !o.Habitat.Enabled {
		return nil
	}
	var failures []error
	for _, wrong := range []struct {
		flag string
		set  bool
	}{
		{"--hub-kubeconfig", o.HubKubeconfig != ""},
		{"--hub-namespaces", len(o.Namespaces.Hub) > 0},
		{"--namespace-map", len(o.Namespaces.Map) > 0},
		{"--hooks", o.Hooks.Enabled},
		{"--url-source-hosts", len(o.Sources.Hosts) > 0},
		{"--require-service-account", o.RequireServiceAccount},
	} {
		if wrong.set {
			failures = append(failures, fmt.Errorf("%s: cannot be used with --habitat: Habitats are where hub and target are one cluster, and that flag is the agent's", wrong.flag))
		}
	}
	return errors.Join(failures...)
}

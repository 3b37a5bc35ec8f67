package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/agent/guard"
	"github.com/krake-observer/krake-observer/internal/agent/sources"
	"github.com/krake-observer/krake-observer/internal/hooks"
	"github.com/krake-observer/krake-observer/internal/options"
	"github.com/krake-observer/krake-observer/internal/reach"
	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// leastResync keeps the resync from becoming a poll.
const leastResync = time.Second

// parallelWrites is how many objects are written at the same time for each Application of
// --concurrency, on average: an Application of which many objects drift needs not wait for them
// one after the other.
const parallelWrites = 4

// Options of the agent.
type Options struct {
	options.Server // its connection is that to the target, where the objects are

	Reach      reach.Options
	Lease      right.LeaseOptions
	Namespaces Namespaces
	Hooks      Hooks
	Sources    sources.Options
	Guard      guard.Options

	// HubKubeconfig is a file that says how to reach the hub, where the
	// Applications are; empty: the hub is the target.
	HubKubeconfig string
	// HubUID is the UID of the hub's namespace kube-system, which --namespace-map needs.
	HubUID string
	// RequireServiceAccount has every write to the target made as the
	// Application's ServiceAccount there: strict mode.
	RequireServiceAccount bool
	// Cluster is the name by which Applications choose this agent's cluster.
	Cluster string
	// Namespace is where the agent runs and keeps its Lease on the target.
	Namespace string
	// Concurrency is how many Applications are reconciled at the same time. Each writes one
	// object at a time, or more while the agent writes fewer than parallelWrites for each.
	Concurrency int
	// MaxHold bounds a hold on one object, from when it is first seen.
	MaxHold time.Duration
	// Resync is the interval in which the caches are compared with the API servers; 0 is
	// never.
	Resync time.Duration
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Server.AddFlags(flags, ":8443")
	o.Reach.AddFlags(flags)
	o.Lease.AddFlags(flags)
	o.Namespaces.addFlags(flags)
	o.Hooks.addFlags(flags)
	o.Sources.AddFlags(flags)
	o.Guard.AddFlags(flags)
	flags.StringVar(&o.HubKubeconfig, "hub-kubeconfig", "", "file that says how to reach the hub, where the Applications are (default: the hub is the cluster of --kubeconfig)")
	flags.StringVar(&o.HubUID, "hub-uid", "", "UID of the namespace kube-system of the hub, for --namespace-map: an agent whose cluster has the same one ends")
	flags.BoolVar(&o.RequireServiceAccount, "require-service-account", false,
		"strict mode: write to the cluster as the ServiceAccount of the Application only, "+application.DefaultServiceAccount+" if the annotation "+application.ServiceAccountAnnotation+" names none")
	flags.StringVar(&o.Cluster, "cluster", application.LocalCluster, "name of the cluster whose Applications the agent carries out")
	flags.StringVar(&o.Namespace, "namespace", "krake-agents", "namespace of the agent's Lease, on the cluster where it runs")
	flags.IntVar(&o.Concurrency, "concurrency", 8, "how many Applications the agent handles at once; at most half of them, but one at least, may have a new spec or be deleted; it writes at most four times as many objects at once")
	flags.DurationVar(&o.MaxHold, "max-hold", 4*time.Hour, "how long at most an object may be held by the annotation "+application.HoldUntilAnnotation+"; 0: not at all")
	flags.DurationVar(&o.Resync, "resync-period", 10*time.Minute, "how often, about, to compare what is known of the objects with a list of their metadata, in case a watch is mute; 0: never")
}

// Validate reports every flag that cannot be used.
func (o *Options) Validate() error {
	failures := []error{
		o.Logging.Validate(), o.Reach.Validate(), o.Lease.Validate(), o.Namespaces.validate(), o.Hooks.validate(),
		o.Sources.Validate(o.RequireServiceAccount), o.Guard.Validate(), options.ValidateNames("--cluster", o.Cluster),
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
		failures = append(failures, errors.New("--scope=cluster with --hub-kubeconfig: every user who writes to the hub would control this cluster: add --require-service-account"))
	}
	failures = append(failures, o.validateMap())
	if o.Resync != 0 && o.Resync < leastResync {
		failures = append(failures, fmt.Errorf("--resync-period: must be 0 or at least %s", leastResync))
	}
	return errors.Join(failures...)
}

// validateMap refuses a map of namespaces where the agent cannot know that hub and target are two
// clusters. In one cluster a user could have objects in a namespace without a right there, because
// admission asks for rights in the namespace of the Application.
func (o *Options) validateMap() error {
	switch {
	case len(o.Namespaces.Map) == 0 && o.HubUID != "":
		return errors.New("--hub-uid: has no effect without --namespace-map: leave it out")
	case len(o.Namespaces.Map) == 0:
		return nil
	case o.HubKubeconfig == "":
		return errors.New("--namespace-map: without --hub-kubeconfig hub and target are one cluster, " + ofOneCluster)
	case o.HubUID == "":
		return errors.New("--namespace-map: the agent has to know that its cluster is not the hub: " +
			"set --hub-uid to the UID of the hub's namespace kube-system, as a new kubectl krake enrol does")
	}
	return nil
}

// ofOneCluster is the end of an error about a map of namespaces in one cluster.
const ofOneCluster = "and an Application could have objects in a namespace where its user has no rights: " +
	"leave it out, and create the Applications in the namespaces of their objects"

// Hooks are the options of the endpoint that Pods call, and of shutdowns.
type Hooks struct {
	// Enabled: the agent makes the Secrets of hooks, and serves the endpoint.
	Enabled bool
	// Address is where to listen, and Endpoint the URL by which Pods reach that.
	Address, Endpoint string
	// ShutdownDefaults hold for an Application without annotations of its own.
	reconcile.ShutdownDefaults
}

func (h *Hooks) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&h.Enabled, "hooks", false, "serve the hooks complete and shutdown of Applications; wants rights on Secrets where these are")
	flags.StringVar(&h.Address, "hooks-bind-address", ":8444", "where to serve the hooks")
	flags.StringVar(&h.Endpoint, "hooks-endpoint", "https://krake-hooks.krake-agents.svc", "URL by which Pods reach the hooks: https://host[:port]")
	flags.DurationVar(&h.GraceTime, "shutdown-grace-time", 30*time.Second, "how long an Application has to confirm its shutdown, unless annotation "+application.ShutdownGraceTimeAnnotation+" says otherwise")
	flags.StringVar((*string)(&h.Strategy), "shutdown-failure-strategy", string(application.GiveUpShutdown),
		"what to do with an Application that does not confirm, unless annotation "+application.ShutdownStrategyAnnotation+" says otherwise: give_up (keep it) or delete")
	flags.IntVar(&h.Retries, "shutdown-retry-count", 0, "how often to ask an Application again if it does not confirm, unless annotation "+application.ShutdownRetryCountAnnotation+" says otherwise")
}

func (h *Hooks) validate() error {
	var failures []error
	if h.Enabled {
		if _, err := hooks.ParseEndpoint(h.Endpoint); err != nil {
			failures = append(failures, fmt.Errorf("--hooks-endpoint: %w", err))
		}
	}
	if h.GraceTime < time.Second {
		failures = append(failures, errors.New("--shutdown-grace-time: must be at least 1s"))
	}
	if h.Strategy != application.GiveUpShutdown && h.Strategy != application.DeleteAnyway {
		failures = append(failures, fmt.Errorf("--shutdown-failure-strategy: %q is neither give_up nor delete", h.Strategy))
	}
	if h.Retries < 0 {
		failures = append(failures, errors.New("--shutdown-retry-count: must not be negative"))
	}
	return errors.Join(failures...)
}

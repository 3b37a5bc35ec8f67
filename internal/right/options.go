package right

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// The defaults of the times in Options.
const (
	DefaultDuration      = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
	DefaultHeartbeat     = 20 * time.Second
)

// leastHeartbeat limits the load of heartbeats on the hub.
const leastHeartbeat = time.Second

// Election configures how one of several replicas acquires a Lease, and keeps it.
type Election struct {
	// Elect has one of several replicas act: the holder of the Lease. Without it a process
	// acts without a Lease.
	Elect bool
	// Duration is how long the Lease lasts, and RetryPeriod the interval
	// of the renewals. After RenewDeadline without a renewal this process stops to
	// write.
	Duration, RenewDeadline, RetryPeriod time.Duration
}

// LeaseOptions configure how a process acquires the right to act, and keeps it.
type LeaseOptions struct {
	// Election is that for the Lease on the target.
	Election

	// Shards is by how many processes the Applications are divided, each of which holds a Lease on
	// the target.
	Shards int
	// Heartbeat is the interval in which the Lease on the hub is renewed, which
	// lasts four times as long.
	Heartbeat time.Duration
}

// AddFlags adds the flags with their defaults.
func (e *Election) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&e.Elect, "leader-elect", true, "act only while holding the Lease, so that several replicas can run")
	flags.DurationVar(&e.Duration, "leader-elect-lease-duration", DefaultDuration, "how long other replicas wait for a replica that is gone")
	flags.DurationVar(&e.RenewDeadline, "leader-elect-renew-deadline", DefaultRenewDeadline, "how long the acting replica tries to renew the Lease before it stops")
	flags.DurationVar(&e.RetryPeriod, "leader-elect-retry-period", DefaultRetryPeriod, "how often to try to acquire or renew the Lease")
}

// AddFlags adds the flags with their defaults.
func (l *LeaseOptions) AddFlags(flags *pflag.FlagSet) {
	l.Election.AddFlags(flags)
	flags.IntVar(&l.Shards, "shards", 1, "among how many replicas the Applications are divided, by their namespaces; another replica more waits to replace one")
	flags.DurationVar(&l.Heartbeat, "heartbeat-interval", DefaultHeartbeat, "how often to renew the Lease on the hub, which shows that this cluster's agent lives")
}

// Validate reports every flag that cannot be used.
func (e *Election) Validate() error {
	var failures []error
	if e.RenewDeadline >= e.Duration {
		failures = append(failures, errors.New("--leader-elect-renew-deadline: must be less than --leader-elect-lease-duration"))
	}
	if e.RetryPeriod <= 0 || 2*e.RetryPeriod > e.RenewDeadline { // a renewal may fail once
		failures = append(failures, errors.New("--leader-elect-retry-period: must be more than 0, and at most half of --leader-elect-renew-deadline"))
	}
	return errors.Join(failures...)
}

// Validate reports every flag that cannot be used.
func (l *LeaseOptions) Validate() error {
	failures := []error{l.Election.Validate()}
	if l.Shards < 1 || l.Shards > application.MostShards {
		failures = append(failures, fmt.Errorf("--shards: must be 1 to %d", application.MostShards))
	}
	if l.Shards > 1 && !l.Elect {
		failures = append(failures, errors.New("--shards: needs --leader-elect: a Lease decides which replica has a shard"))
	}
	if l.Heartbeat < leastHeartbeat {
		failures = append(failures, fmt.Errorf("--heartbeat-interval: must be at least %s", leastHeartbeat))
	}
	return errors.Join(failures...)
}

// Options name the process that is to act, and the Leases that decide it.
type Options struct {
	LeaseOptions

	Cluster   string
	Namespace string // of the Lease on the target
	Identity  string // of this process; no other process ever has it

	Target, Hub coordinationv1client.LeasesGetter
	// TargetUID reads the UID of the target's namespace kube-system.
	TargetUID func(ctx context.Context) (types.UID, error)
	// HubUID is the UID of the hub's namespace kube-system if the target must be another cluster. Empty:
	// it may be the hub.
	HubUID types.UID
	Logger logr.Logger
}

func (o Options) withDefaults() Options {
	o.Duration = cmp.Or(o.Duration, DefaultDuration)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, DefaultRenewDeadline)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, DefaultRetryPeriod)
	o.Heartbeat = cmp.Or(o.Heartbeat, DefaultHeartbeat)
	o.Shards = cmp.Or(o.Shards, 1)
	return o
}

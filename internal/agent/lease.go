package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/krake-observer/krake-observer/internal/leases"
)

// leastHeartbeat keeps the heartbeat from becoming a load.
const leastHeartbeat = time.Second

// Lease says how the agent gets and keeps the right to act.
type Lease struct {
	// Elect has one of several replicas act: that which holds the Lease on the
	// target.
	Elect bool
	// Duration is for how long it is held without a renewal, RenewDeadline for how
	// long a renewal is tried, and RetryPeriod how often.
	Duration, RenewDeadline, RetryPeriod time.Duration
	// Heartbeat is how often the Lease on the hub is renewed.
	Heartbeat time.Duration
}

func (l *Lease) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&l.Elect, "leader-elect", true, "act only while holding the Lease, so that several replicas can run")
	flags.DurationVar(&l.Duration, "leader-elect-lease-duration", 15*time.Second, "how long a replica that is gone keeps the others from acting")
	flags.DurationVar(&l.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "how long the replica that acts tries to renew the Lease before it stops")
	flags.DurationVar(&l.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "how often the Lease is asked for, or renewed")
	flags.DurationVar(&l.Heartbeat, "heartbeat", 20*time.Second, "how often to tell the hub that this cluster's agent lives")
}

func (l *Lease) validate() error {
	var failures []error
	if l.RenewDeadline >= l.Duration {
		failures = append(failures, errors.New("--leader-elect-renew-deadline: must be less than --leader-elect-lease-duration"))
	}
	if l.RetryPeriod <= 0 || 2*l.RetryPeriod > l.RenewDeadline { // a renewal may fail once
		failures = append(failures, errors.New("--leader-elect-retry-period: must be more than 0, and at most half of --leader-elect-renew-deadline"))
	}
	if l.Heartbeat < leastHeartbeat {
		failures = append(failures, fmt.Errorf("--heartbeat: must be at least %s", leastHeartbeat))
	}
	return errors.Join(failures...)
}

// newTenure makes the right to act of this process. changed is told of what becomes of it.
func newTenure(options Options, configs Configs, targetUID func(context.Context) (types.UID, error), changed func(leases.Change)) (*leases.Tenure, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	target, err := coordinationv1.NewForConfig(apart(configs.Target))
	if err != nil {
		return nil, err
	}
	hub, err := coordinationv1.NewForConfig(apart(configs.Hub))
	if err != nil {
		return nil, err
	}
	lease := options.Lease
	return leases.New(leases.Options{
		Cluster: options.Cluster, Namespace: options.Namespace, Identity: host + "_" + string(uuid.NewUUID()),
		Elect: lease.Elect, Duration: lease.Duration, RenewDeadline: lease.RenewDeadline, RetryPeriod: lease.RetryPeriod,
		Heartbeat: lease.Heartbeat, Target: target, Hub: hub, TargetUID: targetUID, Changed: changed, Logger: configs.Logger.WithName("leases"),
	}), nil
}

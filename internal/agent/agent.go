package agent

import (
	"context"
	"errors"
	"net"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/krake-observer/krake-observer/internal/agent/connection"
	"github.com/krake-observer/krake-observer/internal/agent/hub"
	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
	"github.com/krake-observer/krake-observer/internal/right"
)

// name is the agent's user agent, field manager and event source.
const name = "krake-agent"

// Configs are the connections of an agent, and its dependencies on the process.
type Configs struct {
	// Hub and Target reach the two API servers. Where these are one, they are the same
	// configuration.
	Hub, Target *rest.Config
	// Registry gets the agent's metrics.
	Registry prometheus.Registerer
	Logger   logr.Logger
	// DialService reaches Services by their names; nil: as from a Pod of the target.
	DialService func(ctx context.Context, network, address string) (net.Conn, error)
}

// base is what the parts of a replica have in common: it knows the Applications and asks for
// the Leases.
type base struct {
	options       Options
	configs       Configs
	counts        *telemetry.Metrics
	notifications *notifications

	hub, target connection.Connection
	identity    *right.TargetIdentity
	manager     manager.Manager
	known       *hub.ApplicationLister
	events      *telemetry.Recorders
	tenure      *right.Leadership
}

func newBase(ctx context.Context, options Options, configs Configs) (*base, error) {
	identity, err := right.NewTargetIdentity(configs.Target)
	if err != nil {
		return nil, err
	}
	toTarget, err := connection.New(configs.Target)
	toHub := toTarget
	if err == nil && configs.Hub != configs.Target {
		toHub, err = connection.New(configs.Hub)
	}
	if err != nil {
		return nil, err
	}
	mgr, err := newManager(ctx, options, toHub.Config, toTarget.Config, configs.Logger)
	if err != nil {
		return nil, err
	}
	known, err := hub.Watch(ctx, mgr.GetCache(), options.Cluster)
	if err != nil {
		return nil, err
	}
	events, err := telemetry.NewRecorders(toHub.Config, toTarget.Config, name)
	if err != nil {
		return nil, err
	}
	tenure, err := right.Connect(right.Options{
		LeaseOptions: options.Lease, Cluster: options.Cluster, Namespace: options.Namespace,
		TargetUID: identity.Ask, HubUID: types.UID(options.HubUID), Logger: configs.Logger.WithName("leases"),
	}, configs.Target, configs.Hub)
	if err != nil {
		return nil, err
	}
	counts := telemetry.NewMetrics()
	counts.SetActing(options.Cluster, false)
	counts.SetShards(options.Cluster, options.Lease.Shards)
	return &base{
			options: options, configs: configs, counts: counts, notifications: &notifications{},
			hub: toHub, target: toTarget, identity: identity, manager: mgr, known: known, events: events, tenure: tenure,
		}, errors.Join(
			mgr.Add(&everywhere{known.AwaitSync}),
			// The process is healthy while it answers. It is ready once it knows the Applications, unless it
			// must not act; from then on an unreachable hub or target does not matter.
			mgr.AddHealthzCheck("ping", healthz.Ping),
			mgr.AddReadyzCheck("applications", known.Check),
			mgr.AddReadyzCheck("lease", unlessRefused(tenure.Refusal)),
		)
}

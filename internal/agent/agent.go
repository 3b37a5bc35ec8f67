package agent

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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
	// Registry gets the agent's metrics; nil: they are not served.
	Registry prometheus.Registerer
	Logger   logr.Logger
	// DialService reaches Services by their names; nil: as from a Pod of the target.
	DialService func(ctx context.Context, network, address string) (net.Conn, error)
}

// replica is one agent during its construction. No step of that sends a request to hub or
// target, because they may be unreachable for hours.
type replica struct {
	// ctx ends with the work of the agent; stop ends it.
	ctx  context.Context
	stop context.CancelFunc

	options       Options
	configs       Configs
	counts        *telemetry.Metrics
	notifications *notifications

	hub, target connection.Connection
	who         *right.TargetIdentity // the target
	manager     manager.Manager
	known       *hub.Known
	keys        *hub.Keys
	events      *telemetry.Recorders
	changes     *changes
	tenure      *right.Tenure
}

// newAgent makes an agent that knows the Applications and asks for the Leases, and nothing
// else.
func newAgent(ctx context.Context, options Options, configs Configs) (*replica, error) {
	a := &replica{options: options, configs: configs, counts: telemetry.NewMetrics(), notifications: &notifications{}}
	a.ctx, a.stop = context.WithCancel(ctx)
	var err error
	if err = a.reach(); err != nil {
		return nil, err
	}
	if a.manager, err = newManager(a.ctx, options, a.hub.Config, a.target.Config, configs.Logger); err != nil {
		return nil, err
	}
	if a.known, err = hub.Watch(a.ctx, a.manager.GetCache(), options.Cluster); err != nil {
		return nil, err
	}
	if a.keys, err = hub.WatchKeys(a.ctx, a.manager.GetCache(), a.rereadAll, configs.Logger.WithName("keys")); err != nil {
		return nil, err
	}
	if err = a.manager.Add(&everywhere{a.known.AwaitSync}); err != nil {
		return nil, err
	}
	if a.events, err = telemetry.NewRecorders(a.hub.Config, a.target.Config, name); err != nil {
		return nil, err
	}
	a.changes = &changes{
		cluster: options.Cluster, acting: a.counts.SetActing, known: a.known.Names, wake: a.notifications.notifyAll,
		renewTarget: a.target.Renew, renewHub: a.hub.Renew, recorder: a.events.Hub,
	}
	a.counts.SetActing(options.Cluster, false)
	a.counts.SetShards(options.Cluster, options.Lease.Shards)
	if a.tenure, err = right.Connect(right.Options{
		LeaseOptions: options.Lease, Cluster: options.Cluster, Namespace: options.Namespace, TargetUID: a.who.Ask, HubUID: types.UID(options.HubUID), Changed: a.changes.react, Logger: configs.Logger.WithName("leases"),
	}, configs.Target, configs.Hub); err != nil {
		return nil, err
	}
	a.changes.refusal = a.tenure.Refusal
	return a, addChecks(a.manager, a.known, a.tenure.Refusal)
}

// rereadAll requests a pass for each Application, because other signatures are valid now.
func (a *replica) rereadAll() { a.notifications.notifyAll(a.known.Names()) }

// reach makes the connections to hub and target.
func (a *replica) reach() error {
	var err error
	if a.who, err = right.NewTargetIdentity(a.configs.Target); err != nil {
		return err
	}
	if a.target, err = connection.New(a.configs.Target); err != nil {
		return err
	}
	a.hub = a.target
	if a.configs.Hub != a.configs.Target {
		a.hub, err = connection.New(a.configs.Hub)
	}
	return err
}

// run runs the agent. The Leases outlive the work that needs them, and the Events outlive
// both.
func (a *replica) run() error {
	mute, err := a.events.Start(a.ctx)
	if err != nil {
		return err
	}
	defer mute()
	holding, giveBack := context.WithCancel(context.WithoutCancel(a.ctx))
	defer giveBack()
	ended := make(chan error, 1)
	go func() {
		ended <- a.hold(holding)
		a.stop()
	}()
	err = a.manager.Start(a.ctx)
	giveBack()
	return errors.Join(err, <-ended)
}

// hold asks for the Leases once the Applications are known. A replica that must still list
// them would block another one that has them.
func (a *replica) hold(ctx context.Context) error {
	if a.manager.GetCache().WaitForCacheSync(a.ctx) && a.ctx.Err() == nil {
		err := a.tenure.Run(ctx)
		if errors.Is(err, right.ErrTargetIsHub) {
			return fmt.Errorf("--namespace-map: %w, %s", err, ofOneCluster)
		}
		return err
	}
	return nil // it ends before
}

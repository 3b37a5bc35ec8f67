package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/krake-observer/krake-observer/internal/agent/connection"
	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
	"github.com/krake-observer/krake-observer/internal/habitat"
	"github.com/krake-observer/krake-observer/internal/options"
	"github.com/krake-observer/krake-observer/internal/right"
)

// name is the agent's user agent, field manager and event source.
const name = "krake-agent"

// Configs are what an agent needs of the process that it runs in.
type Configs struct {
	// Hub and Target say how to reach the two API servers. Where they are one, it
	// is the same configuration.
	Hub, Target *rest.Config
	// Registry takes the agent's metrics; nil: nobody reads them.
	Registry prometheus.Registerer
	Logger   logr.Logger
	// DialService reaches Services by their names; nil: as from a Pod of the target.
	DialService func(ctx context.Context, network, address string) (net.Conn, error)
}

// Run runs the agent until the context ends, or its right to act is lost. Then
// the passes under way end first, and after them the Leases are given back.
func Run(ctx context.Context, options Options) error {
	logger, err := options.Logging.Start(os.Stderr)
	if err != nil {
		return err
	}
	agent := name
	if options.Habitat.Enabled {
		agent = habitat.Name
	}
	configs, err := connections(options, agent)
	if err != nil {
		return err
	}
	configs.Registry, configs.Logger = ctrlmetrics.Registry, logger
	if options.Habitat.Enabled {
		return runHabitats(ctx, options, configs)
	}
	return RunWith(ctx, options, configs)
}

// connections reads how to reach target and hub. Without a hub, the target is it.
func connections(from Options, userAgent string) (Configs, error) {
	target, err := from.Connection.Config(userAgent)
	if err != nil || from.HubKubeconfig == "" {
		return Configs{Hub: target, Target: target}, err
	}
	hub, err := (&options.Connection{Kubeconfig: from.HubKubeconfig}).Config(userAgent)
	if err != nil {
		return Configs{}, fmt.Errorf("--hub-kubeconfig: %w", err)
	}
	return Configs{Hub: hub, Target: target}, nil
}

// RunWith is [Run] in a process that may have other agents, of other clusters.
func RunWith(ctx context.Context, options Options, configs Configs) error {
	agent, err := newAgent(ctx, options, configs)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	defer agent.stop()
	if err := agent.connect(); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return agent.run()
}

// agent is one agent while it is put together. No step of that asks hub or target
// for anything: they may be away for hours.
type agent struct {
	// ctx ends with what the agent does, stop ends it.
	ctx  context.Context
	stop context.CancelFunc

	options       Options
	configs       Configs
	counts        *telemetry.Metrics
	notifications *notifications

	hub, target connection.Connection
	who         *right.TargetIdentity // the target
	manager     manager.Manager
	folding     *folding
	known       *applications
	events      *telemetry.Recorders
	changes     *changes
	tenure      *right.Tenure
}

// newAgent makes an agent that knows the Applications and asks for the Leases,
// and does nothing else.
func newAgent(ctx context.Context, options Options, configs Configs) (*agent, error) {
	a := &agent{options: options, configs: configs, counts: telemetry.NewMetrics(), notifications: &notifications{}, folding: newFolding()}
	a.ctx, a.stop = context.WithCancel(ctx)
	var err error
	if err = a.reach(); err != nil {
		return nil, err
	}
	if a.manager, err = newManager(a.ctx, options, a.hub.Config, a.target.Config, a.folding.fold, configs.Logger); err != nil {
		return nil, err
	}
	if err = a.manager.Add(&everywhere{newThrift().run}); err != nil {
		return nil, err
	}
	if a.known, err = knowApplications(a.ctx, a.manager, options.Cluster); err != nil {
		return nil, err
	}
	if a.events, err = telemetry.NewRecorders(a.hub.Config, a.target.Config, name); err != nil {
		return nil, err
	}
	a.changes = &changes{
		cluster: options.Cluster, acting: a.counts.SetActing, known: a.known.names, wake: a.notifications.notifyAll,
		renewTarget: a.target.Renew, renewHub: a.hub.Renew, recorder: a.events.Hub,
	}
	a.counts.SetActing(options.Cluster, false)
	if a.tenure, err = right.Connect(right.Options{
		LeaseOptions: options.Lease, Cluster: options.Cluster, Namespace: options.Namespace, TargetUID: a.who.Ask, Changed: a.changes.react, Logger: configs.Logger.WithName("leases"),
	}, configs.Target, configs.Hub); err != nil {
		return nil, err
	}
	a.changes.refusal = a.tenure.Refusal
	return a, addChecks(a.manager, a.known, a.tenure.Refusal)
}

// reach makes the connections to hub and target.
func (a *agent) reach() error {
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

// run runs the agent. The Leases outlive what is done by their right, and the
// Events both.
func (a *agent) run() error {
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

// hold asks for the Leases once the Applications are known: a replica that has to
// list them yet would keep one from acting that has them.
func (a *agent) hold(ctx context.Context) error {
	if a.manager.GetCache().WaitForCacheSync(a.ctx) && a.ctx.Err() == nil {
		return a.tenure.Run(ctx)
	}
	return nil // it ends before
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/client-go/rest"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/krake-observer/krake-observer/internal/options"
	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/internal/supported"
)

// Run runs the agent until the context ends, or its right to act is lost. Then the running
// passes end first, and after them it releases the Leases.
func Run(ctx context.Context, options Options) error {
	logger, err := options.Logging.Start(os.Stderr)
	if err != nil {
		return err
	}
	configs, err := connections(options)
	if err != nil {
		return err
	}
	for _, server := range slices.Compact([]*rest.Config{configs.Target, configs.Hub}) {
		if err := supported.CheckServer(server); err != nil {
			return err
		}
	}
	configs.Registry, configs.Logger = ctrlmetrics.Registry, logger
	return RunWith(ctx, options, configs)
}

// connections reads the configurations of target and hub. Without a hub, the target is the hub.
func connections(from Options) (Configs, error) {
	target, err := from.Connection.Config(name)
	if err != nil || from.HubKubeconfig == "" {
		return Configs{Hub: target, Target: target}, err
	}
	hub, err := (&options.Connection{Kubeconfig: from.HubKubeconfig}).Config(name)
	if err != nil {
		return Configs{}, fmt.Errorf("--hub-kubeconfig: %w", err)
	}
	return Configs{Hub: hub, Target: target}, nil
}

// RunWith is [Run] in a process that may have other agents, of other clusters.
func RunWith(ctx context.Context, options Options, configs Configs) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	agent, err := newReplica(ctx, options, configs)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return agent.run(ctx, stop)
}

// run runs the replica, and stops its work with its right to act. The Leases outlive the work
// that needs them, and the Events outlive both.
func (r *replica) run(ctx context.Context, stop context.CancelFunc) error {
	mute, err := r.events.Start(ctx)
	if err != nil {
		return err
	}
	defer mute()
	holding, giveBack := context.WithCancel(context.WithoutCancel(ctx))
	defer giveBack()
	ended := make(chan error, 1)
	go func() {
		ended <- r.hold(ctx, holding)
		stop()
	}()
	err = r.manager.Start(ctx)
	giveBack()
	return errors.Join(err, <-ended)
}

// hold asks for the Leases once the Applications are known. A replica that must still list
// them would block another one that has them.
func (r *replica) hold(work, holding context.Context) error {
	if r.manager.GetCache().WaitForCacheSync(work) && work.Err() == nil {
		err := r.tenure.Run(holding, r.changes.react)
		if errors.Is(err, right.ErrTargetIsHub) {
			return fmt.Errorf("--namespace-map: %w, %s", err, ofOneCluster)
		}
		return err
	}
	return nil // it ends before
}

package agent

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// name is the agent's user agent, field manager and event source.
const name = "krake-agent"

// Run runs the agent until the context ends. Then the passes under way end
// first, and after them the Lease is given back.
func Run(ctx context.Context, options Options) error {
	logger, err := options.Logging.Start(os.Stderr)
	if err != nil {
		return err
	}
	config, err := options.Connection.Config(name)
	if err != nil {
		return err
	}
	mgr, err := newManager(config, options, logger)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	known, err := knowApplications(ctx, mgr)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := connect(ctx, mgr, known, options, logger); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := addChecks(mgr, known); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return mgr.Start(ctx)
}

// newManager makes a manager whose cache holds the Applications of this
// cluster, and no other ConfigMap.
func newManager(config *rest.Config, options Options, logger logr.Logger) (manager.Manager, error) {
	selector, err := selectorOf(application.HolderLabel(options.Cluster))
	if err != nil {
		return nil, err
	}
	lease, err := newLease(config, options)
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(config, manager.Options{
		Logger: logger,
		Cache: cache.Options{
			ByObject:         map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: selector}},
			DefaultTransform: cache.TransformStripManagedFields(),
			// Nothing is watched and kept because somebody happened to read it.
			ReaderFailOnMissingInformer: true,
		},
		LeaderElection:                      options.LeaderElect,
		LeaderElectionResourceLockInterface: lease,
		LeaderElectionID:                    lease.LeaseMeta.Name, // in the metric of who leads
		LeaderElectionReleaseOnCancel:       true,
		HealthProbeBindAddress:              options.HealthAddress,
		Metrics:                             options.Metrics.Server(),
	})
}

// newLease makes the lock by hand: the manager's own would write an Event at
// each start, and a restart of the agent writes nothing but its Lease.
func newLease(config *rest.Config, options Options) (*resourcelock.LeaseLock, error) {
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: options.Namespace, Name: name + "-" + options.Cluster},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}, nil
}

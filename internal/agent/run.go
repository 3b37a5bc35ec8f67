package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/apply"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// name is the agent's user agent, field manager and event source.
const name = "krake-agent"

// Run runs the agent until the context ends.
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
	if err := connect(ctx, mgr, options, logger); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := addChecks(mgr); err != nil {
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
		},
		LeaderElection:                      options.LeaderElect,
		LeaderElectionResourceLockInterface: lease,
		LeaderElectionReleaseOnCancel:       true,
		HealthProbeBindAddress:              options.HealthAddress,
		Metrics:                             server.Options{BindAddress: options.MetricsAddress},
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

// connect puts the loop between the store of Applications and the observers.
func connect(ctx context.Context, mgr manager.Manager, options Options, logger logr.Logger) error {
	target, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	notifications := &notifications{}
	observers := observer.New(ctx, observer.Options{
		Client: target, Selector: application.OwnedByLabel, Notify: notifications.notify, Now: time.Now,
	})
	reconciler := &reconcile.Reconciler{
		ClusterName:  options.Cluster,
		Scope:        options.Reach.Scope,
		Applications: newStore(mgr.GetClient(), name),
		Cluster:      apply.New(target, name),
		Observers:    observers,
		Mapper:       mgr.GetRESTMapper(),
		FieldManager: name,
		Report:       newReporter(mgr.GetEventRecorder(name), logger).report,
		Now:          time.Now,
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("application").
		For(&corev1.ConfigMap{}, builder.WithPredicates(intentChanged())).
		WatchesRawSource(source.Func(notifications.start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency}).
		Complete(reconciler)
}

// intentChanged leaves out the events of what webhook and agent write, the
// agent's own echo among them.
func intentChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.ConfigMap)
		after, okAfter := e.ObjectNew.(*corev1.ConfigMap)
		return !ok || !okAfter || !application.SameIntent(before, after)
	}}
}

// notifications carries what the observers say into the controller's queue.
type notifications struct {
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]
}

// start is called before any reconciliation, and so before any notification.
func (n *notifications) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	n.queue = queue
	return nil
}

func (n *notifications) notify(owner observer.Owner) {
	n.queue.Add(ctrl.Request{NamespacedName: owner})
}

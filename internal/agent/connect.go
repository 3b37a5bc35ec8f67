package agent

import (
	"context"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/apply"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// target are the clients of the target cluster.
type target struct {
	dynamic.Interface

	discovery discovery.DiscoveryInterface
	// metadata is for what is watched, lists for what is compared: those requests
	// are counted.
	metadata, lists metadata.Interface
}

func newTarget(mgr manager.Manager, count func(reason string)) (target, error) {
	config, client := mgr.GetConfig(), mgr.GetHTTPClient()
	objects, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return target{}, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return target{}, err
	}
	watched, err := metadata.NewForConfigAndClient(config, client)
	if err != nil {
		return target{}, err
	}
	counting := *client
	counting.Transport = countedTransport{transportOf(client), count, resyncReason}
	lists, err := metadata.NewForConfigAndClient(config, &counting)
	return target{objects, kinds, watched, lists}, err
}

// transportOf gives what sends the requests of a client.
func transportOf(client *http.Client) http.RoundTripper {
	if client.Transport == nil {
		return http.DefaultTransport
	}
	return client.Transport
}

// connect puts the loop between the store of Applications and the observers.
func connect(ctx context.Context, mgr manager.Manager, known *applications, options Options, logger logr.Logger) error {
	counts := newMetrics()
	target, err := newTarget(mgr, counts.request)
	if err != nil {
		return err
	}
	notifications := &notifications{}
	kinds := newKinds(target.discovery, notifications.notifyAfter, time.Now)
	observers := observer.New(ctx, observer.Options{
		Client: target, Metadata: target.lists, Selector: application.OwnedByLabel,
		Notify: notifications.notify, Summarise: reconcile.Summarise, OwnerOf: application.OwnerOf,
		Resync: options.Resync, Now: time.Now, Logger: logger.WithName("observer"),
	})
	selector, err := selectorOf(application.HolderLabel(options.Cluster))
	if err != nil {
		return err
	}
	store := newStore(counted{mgr.GetClient(), counts.request}, name)
	applications := &hubResync{
		selector: selector, interval: options.Resync, grace: resyncGrace, lists: target.lists,
		cached: mgr.GetCache(), live: mgr.GetAPIReader(), store: store,
		notify: notifications.notify, logger: logger.WithName("applications"),
	}
	reconciler := &reconcile.Reconciler{
		ClusterName:  options.Cluster,
		Scope:        options.Reach.Scope,
		Applications: store,
		Cluster:      apply.New(target, name, counts.request),
		Observers:    observers,
		Kinds:        kinds,
		FieldManager: name,
		MaxHold:      options.MaxHold,
		Report:       newReporter(mgr.GetEventRecorder(name), logger, counts).report,
		Now:          time.Now,
	}
	if err := counts.register(ctrlmetrics.Registry); err != nil {
		return err
	}
	kindOf := func(resource schema.GroupVersionResource) string { return counts.kinds.of(kinds.kindOf(resource)) }
	if err := ctrlmetrics.Registry.Register(newGauges(known.count, observers.Stats, reconciler.Contended, kindOf)); err != nil {
		return err
	}
	for _, runnable := range []manager.Runnable{
		manager.RunnableFunc(observers.Resync),
		manager.RunnableFunc(applications.run),
		newDefinitions(target.metadata, kinds.redefined, logger.WithName("kinds")),
	} {
		if err := mgr.Add(runnable); err != nil {
			return err
		}
	}
	return addLoop(mgr, notifications, kinds, reconciler, options)
}

// addLoop has the Applications reconciled that change, or of whose objects there
// is news.
func addLoop(mgr manager.Manager, notifications *notifications, kinds *kinds, reconciler ctrlreconcile.Reconciler, options Options) error {
	pass := func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		ctx, done := outliving(ctx, passGrace)
		defer done()
		kinds.forget(request.NamespacedName)
		return reconciler.Reconcile(ctx, request)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("application").
		For(&corev1.ConfigMap{}, builder.WithPredicates(intentChanged())).
		WatchesRawSource(source.Func(notifications.start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: newBackoff()}).
		Complete(ctrlreconcile.Func(pass))
}

// passGrace is how long a pass under way may go on when the agent is to end, or has
// lost the Lease: less than the time after which another may take that.
const passGrace = 4 * time.Second

// outliving gives a context that ends that much later than another one: a request
// that is cut off may have been carried out, and nobody would tell of it.
func outliving(ctx context.Context, grace time.Duration) (longer context.Context, done func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
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

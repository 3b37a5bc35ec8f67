package agent

import (
	"context"
	"errors"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/krake-observer/krake-observer/internal/agent/sources"
	"github.com/krake-observer/krake-observer/internal/agent/target"
	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
	"github.com/krake-observer/krake-observer/internal/discovery"
	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/apply"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// connect puts the loop between the store of Applications on the hub and the
// observers on the target.
func (a *agent) connect() error {
	behindFence := right.Fence(a.target.Config, a.tenure.Target)
	clients, err := target.NewClients(behindFence)
	if err != nil {
		return err
	}
	lists, err := telemetry.NewLists(behindFence, a.counts.CountRequest)
	if err != nil {
		return err
	}
	clusters, err := target.NewAccounts(behindFence, apply.New(clients.Objects, name, a.counts.CountRequest), name, a.counts.CountRequest)
	if err != nil {
		return err
	}
	store := newStore(telemetry.CountWrites(unfolding{a.manager.GetClient(), a.folding}, a.counts.CountRequest), name, a.options.Cluster, a.tenure.Hub)
	applications, err := a.newHubResync(store)
	if err != nil {
		return err
	}
	kinds := discovery.NewKinds(clients.Discovery, a.notifications.notifyAfter, time.Now)
	observers := observer.New(a.ctx, observer.Options{
		Client: clients.Objects, Streams: clients.Streams, Metadata: lists, Selector: application.OwnedByLabel, Namespaces: a.options.Namespaces.Target,
		Notify: a.notifications.notify, Summarise: reconcile.Summarise, Summarised: reconcile.Summarised(), OwnerOf: application.OwnerOf,
		Resync: a.options.Resync, Now: time.Now, Logger: a.configs.Logger.WithName("observer"),
	})
	reconciler := &reconcile.Reconciler{
		ClusterName: a.options.Cluster, Target: a.who.UID, Scope: a.options.Reach.Scope, RequireAccount: a.options.RequireServiceAccount,
		Namespaces:   reconcile.Namespaces{Map: a.options.Namespaces.mapping(), Allowed: a.options.Namespaces.Target},
		Applications: store, Clusters: clusters, Observers: observers, Kinds: kinds, FieldManager: name, MaxHold: a.options.MaxHold,
		Report: telemetry.NewReporter(a.events.Hub, a.events.Target, a.configs.Logger, a.counts, time.Now).Report, Now: time.Now,
	}
	if reconciler.Sources, err = sources.New(a.options.Sources); err != nil {
		return err
	}
	if err := a.addHooks(reconciler, store); err != nil {
		return err
	}
	a.changes.pending, a.changes.resyncTarget, a.changes.resyncHub = reconciler.Pending, observers.ResyncNow, applications.now
	if err := a.register(observers, kinds, reconciler); err != nil {
		return err
	}
	definitions := discovery.NewDefinitions(clients.Metadata, kinds.Redefine, a.configs.Logger.WithName("kinds"))
	for _, run := range []func(context.Context) error{observers.Resync, applications.run, definitions.Start} {
		if err := a.manager.Add(manager.RunnableFunc(right.OnceActing(a.tenure, run))); err != nil {
			return err
		}
	}
	return a.addLoop(store, &loop{right.Confirmed(a.tenure, applications.confirmed), kinds, reconciler})
}

// newHubResync compares the Applications with what is known of them.
func (a *agent) newHubResync(store *store) (*hubResync, error) {
	selector, err := selectorOf(application.HolderLabel(a.options.Cluster))
	if err != nil {
		return nil, err
	}
	lists, err := telemetry.NewLists(a.hub.Config, a.counts.CountRequest)
	if err != nil {
		return nil, err
	}
	namespaces := a.options.Namespaces.Hub
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &hubResync{
		selector: selector, namespaces: namespaces, interval: a.options.Resync, grace: resyncGrace, hurry: make(chan struct{}, 1), confirmed: make(chan struct{}),
		lists: lists, cached: a.manager.GetCache(), live: a.manager.GetAPIReader(), store: store,
		notify: a.notifications.notify, logger: a.configs.Logger.WithName("applications"),
	}, nil
}

// register has the metrics of the agent served, if anybody reads them.
func (a *agent) register(observers *observer.Observers, kinds *discovery.Kinds, reconciler *reconcile.Reconciler) error {
	registry := a.configs.Registry
	if registry == nil {
		return nil
	}
	kindOf := func(resource schema.GroupVersionResource) string { return a.counts.KindLabel(kinds.KindOf(resource)) }
	return errors.Join(
		a.counts.Register(registry),
		registry.Register(telemetry.NewGauges(a.known.count, observers.Stats, reconciler.Contended, kindOf)),
	)
}

// addLoop has the Applications reconciled that change, or of whose objects there
// is news. For the first list of them, the loop waits as long as it takes.
func (a *agent) addLoop(store *store, loop *loop) error {
	return ctrl.NewControllerManagedBy(a.manager).
		Named("application").
		For(&corev1.ConfigMap{}, builder.WithPredicates(intentChanged(a.options.Cluster, a.folding, store.isCached))).
		WatchesRawSource(source.Func(a.notifications.start)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: a.options.Concurrency, RateLimiter: newBackoff(), CacheSyncTimeout: math.MaxInt64,
		}).
		Complete(loop)
}

// intentChanged leaves out the events of what webhook and agents write and the
// agent of this cluster need not act on, its own echo among them. Who is to hear of each
// update is told.
func intentChanged(cluster string, folding *folding, updated func(*corev1.ConfigMap)) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.ConfigMap)
		after, okAfter := e.ObjectNew.(*corev1.ConfigMap)
		if okAfter {
			updated(after)
		}
		if !ok || !okAfter {
			return true
		}
		before, err := folding.unfold(before)
		after, errAfter := folding.unfold(after)
		return err != nil || errAfter != nil || !application.SameFor(before, after, cluster)
	}}
}

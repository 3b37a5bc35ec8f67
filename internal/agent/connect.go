package agent

import (
	"context"
	"errors"
	"math"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/krake-observer/krake-observer/internal/agent/hub"
	"github.com/krake-observer/krake-observer/internal/agent/sources"
	"github.com/krake-observer/krake-observer/internal/agent/target"
	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
	"github.com/krake-observer/krake-observer/internal/apply"
	"github.com/krake-observer/krake-observer/internal/discovery"
	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// connect puts the loop between the store of Applications on the hub and the
// observers on the target.
func (a *replica) connect() error {
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
	store := hub.NewStore(telemetry.CountWrites(a.manager.GetClient(), a.counts.CountRequest), name, a.options.Cluster, a.keys.Current, a.tenure.Hub)
	applications, err := a.newHubResync(store)
	if err != nil {
		return err
	}
	kinds := discovery.NewKinds(clients.Discovery, a.notifications.notifyAfter, time.Now, a.configs.Logger.WithName("kinds"))
	observers := observer.New(a.ctx, observer.Options{
		Client: clients.Objects, Metadata: lists, Selector: application.OwnedByLabel, Namespaces: a.options.Namespaces.Target,
		Notify: a.notifications.notify, Crowded: a.notifications.crowded, OwnerOf: a.ownerOf,
		Summarise: reconcile.Summarise, Resync: a.options.Resync, Now: time.Now, Logger: a.configs.Logger.WithName("observer"),
	})
	reporter := telemetry.NewReporter(a.events.Hub, a.events.Target, a.configs.Logger, a.counts, time.Now)
	turns := newTurns(a.options.Concurrency, a.notifications.notifyFirst, a.notifications.crowded)
	reconciler := &reconcile.Reconciler{
		ClusterName: a.options.Cluster, Target: a.who.UID, Scope: a.options.Reach.Scope, RequireAccount: a.options.RequireServiceAccount,
		Namespaces:   reconcile.Namespaces{Map: a.options.Namespaces.mapping(), Allowed: a.options.Namespaces.Target},
		Applications: store, Clusters: clusters, Observers: observers, Kinds: kinds, FieldManager: name, MaxHold: a.options.MaxHold,
		Slots: semaphore.NewWeighted(int64((parallelWrites - 1) * a.options.Concurrency)), MayBegin: turns.take,
		Report: reporter.Report, Failing: reporter.Failing, Now: time.Now,
	}
	if reconciler.Sources, err = sources.New(a.options.Sources); err != nil {
		return err
	}
	if err := a.addHooks(reconciler, store); err != nil {
		return err
	}
	if err := a.addGuard(reconciler, store, kinds); err != nil {
		return err
	}
	a.changes.pending, a.changes.resyncTarget, a.changes.resyncHub = reconciler.Pending, observers.ResyncNow, applications.Now
	if err := a.register(observers, kinds, reconciler, turns); err != nil {
		return err
	}
	definitions := &discovery.Definitions{Client: clients.Metadata, Redefine: kinds.Redefine, Logger: a.configs.Logger.WithName("kinds")}
	for _, run := range []func(context.Context) error{observers.Resync, applications.Run, definitions.Start} {
		if err := a.manager.Add(manager.RunnableFunc(right.OnceActing(a.tenure, run))); err != nil {
			return err
		}
	}
	return a.addLoop(store, &loop{right.Confirmed(a.tenure, applications.Confirmed()), kinds, reconciler, turns})
}

// ownerOf returns the Application that an object names, if this replica acts for it.
func (a *replica) ownerOf(live map[string]any) (observer.Owner, bool) {
	owner, ok := application.OwnerOf(live)
	return owner, ok && a.tenure.Owns(owner.Namespace)
}

// newHubResync compares the Applications with what is known of them.
func (a *replica) newHubResync(store *hub.Store) (*hub.Resync, error) {
	lists, err := telemetry.NewLists(a.hub.Config, a.counts.CountRequest)
	if err != nil {
		return nil, err
	}
	return hub.NewResync(hub.ResyncOptions{
		Cluster: a.options.Cluster, Namespaces: a.options.Namespaces.Hub, Interval: a.options.Resync,
		Lists: lists, Cached: a.manager.GetCache(), Live: a.manager.GetAPIReader(), Store: store,
		Notify: a.notifyOfMissed, Logger: a.configs.Logger.WithName("applications"),
	})
}

// notifyOfMissed wakes an Application of which the watch has missed a change, and those that wait for it.
func (a *replica) notifyOfMissed(changed types.NamespacedName) {
	a.notifications.notify(changed)
	for _, waiting := range a.known.WaitingFor(changed) {
		a.notifications.notify(waiting)
	}
}

// waitingFor requests a pass for each Application that waits for a changed one before it begins.
func (a *replica) waitingFor(_ context.Context, changed client.Object) []ctrl.Request {
	var requests []ctrl.Request
	for _, waiting := range a.known.WaitingFor(client.ObjectKeyFromObject(changed)) {
		requests = append(requests, ctrl.Request{NamespacedName: waiting})
	}
	return requests
}

// register adds the metrics of the agent to the registry, if there is one.
func (a *replica) register(observers *observer.Observers, kinds *discovery.Kinds, reconciler *reconcile.Reconciler, turns *turns) error {
	registry := a.configs.Registry
	if registry == nil {
		return nil
	}
	return errors.Join(a.counts.Register(registry), registry.Register(&telemetry.Gauges{
		Applications: a.countStates, Stats: observers.Stats, Contended: reconciler.Contended, Waiting: turns.count,
		KindOf:   func(resource schema.GroupVersionResource) string { return a.counts.KindLabel(kinds.KindOf(resource)) },
		HubToken: a.hubToken(),
	}))
}

// hubToken returns the file with the token for the hub, empty if the hub is the target.
func (a *replica) hubToken() string {
	if a.configs.Hub == a.configs.Target {
		return ""
	}
	return a.configs.Hub.BearerTokenFile
}

// countStates counts the Applications by state, nil while they are not known.
func (a *replica) countStates() map[application.State]int {
	if found, known := a.known.List(); known {
		return telemetry.CountStates(found, a.options.Cluster)
	}
	return nil
}

// addLoop reconciles an Application when it changes, or when an observer notifies it.
// For the first list of Applications the loop waits without limit.
func (a *replica) addLoop(store *hub.Store, loop *loop) error {
	return ctrl.NewControllerManagedBy(a.manager).
		Named("application").
		For(&corev1.ConfigMap{}, builder.WithPredicates(hub.IntentChanged(a.options.Cluster, store.RecordCached))).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(a.waitingFor)).
		WatchesRawSource(source.Func(a.notifications.start)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: a.options.Concurrency, RateLimiter: newBackoff(loop.turns.isWaiting), CacheSyncTimeout: math.MaxInt64,
			LogConstructor: logOf(a.configs.Logger.WithName("loop")),
		}).
		Complete(loop)
}

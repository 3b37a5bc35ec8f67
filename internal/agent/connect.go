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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
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
	"github.com/krake-observer/krake-observer/internal/hooks"
	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// replica is one process of the agent.
type replica struct {
	*base

	changes *changes
}

// newReplica puts the loop between the store of Applications on the hub and the observers on
// the target. It sends no request to either, because they may be unreachable for hours.
func newReplica(ctx context.Context, options Options, configs Configs) (*replica, error) {
	b, err := newBase(ctx, options, configs)
	if err != nil {
		return nil, err
	}
	store, applications, err := b.newStore(ctx)
	if err != nil {
		return nil, err
	}
	fenced := right.Fence(b.target.Config, b.tenure.Target)
	clients, err := target.NewClients(fenced)
	if err != nil {
		return nil, err
	}
	clusters, err := target.NewAccounts(fenced, apply.New(clients.Objects, name, b.counts.CountRequest), name, b.counts.CountRequest)
	if err != nil {
		return nil, err
	}
	observers, err := b.newObservers(ctx, fenced, clients.Objects)
	if err != nil {
		return nil, err
	}
	issuer, err := b.newIssuer()
	if err != nil {
		return nil, err
	}
	logger := configs.Logger.WithName("kinds")
	kinds := discovery.NewKinds(clients.Discovery, b.notifications.notifyAfter, time.Now, logger)
	definitions := &discovery.Definitions{Client: clients.Metadata, Redefine: kinds.Redefine, Logger: logger}
	turns := newRolloutLimiter(options.Concurrency, b.notifications.notifyFirst, b.notifications.crowded)
	reconciler, err := b.newReconciler(store, clusters, observers, kinds, turns, issuer)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		b.addHooks(issuer, reconciler, store),
		b.addGuard(reconciler, store, kinds),
		b.register(observers, kinds, reconciler, turns),
		b.addOnceActing(observers.Resync), b.addOnceActing(applications.Run), b.addOnceActing(definitions.Start),
		b.addLoop(store, &loop{right.Confirmed(b.tenure, applications.Confirmed()), reconciler, turns, b.notifications.endCrowd}),
	)
	return &replica{b, &changes{
		cluster: options.Cluster, acting: b.counts.SetActing, refusal: b.tenure.Refusal,
		known: b.known.Names, pending: reconciler.Pending, wake: b.notifications.notifyAll, recorder: b.events.Hub,
		renewTarget: b.target.Renew, renewHub: b.hub.Renew, resyncTarget: observers.ResyncNow, resyncHub: applications.Now,
	}}, err
}

// newStore makes the store of Applications, and what compares them with what is known of them.
func (b *base) newStore(ctx context.Context) (*hub.Store, *hub.Resync, error) {
	// With other keys, other signatures are valid.
	keys, err := hub.WatchKeys(ctx, b.manager.GetCache(), func() { b.notifications.notifyAll(b.known.Names()) }, b.configs.Logger.WithName("keys"))
	if err != nil {
		return nil, nil, err
	}
	store := hub.NewStore(telemetry.CountWrites(b.manager.GetClient(), b.counts.CountRequest), name, b.options.Cluster, keys.Current, b.tenure.Hub)
	lists, err := telemetry.NewLists(b.hub.Config, b.counts.CountRequest)
	if err != nil {
		return nil, nil, err
	}
	resync, err := hub.NewResync(hub.ResyncOptions{
		Cluster: b.options.Cluster, Namespaces: b.options.Namespaces.Hub, Interval: b.options.Resync,
		Lists: lists, Cached: b.manager.GetCache(), Live: b.manager.GetAPIReader(), Store: store,
		Notify: b.notifyOfMissed, Logger: b.configs.Logger.WithName("applications"),
	})
	return store, resync, err
}

// notifyOfMissed wakes an Application of which the watch has missed a change, and those that wait for it.
func (b *base) notifyOfMissed(changed types.NamespacedName) {
	for _, name := range append([]types.NamespacedName{changed}, b.known.WaitingFor(changed)...) {
		b.notifications.notify(name)
	}
}

// newObservers makes the observers of objects on the target.
func (b *base) newObservers(ctx context.Context, fenced *rest.Config, objects dynamic.Interface) (*observer.Observers, error) {
	lists, err := telemetry.NewLists(fenced, b.counts.CountRequest)
	if err != nil {
		return nil, err
	}
	return observer.New(ctx, observer.Options{
		Client: objects, Metadata: lists, Selector: application.OwnedByLabel, Namespaces: b.options.Namespaces.Target,
		Notify: b.notifications.notify, Crowded: b.notifications.crowded, OwnerOf: b.ownerOf,
		Summarise: reconcile.Summarise, Resync: b.options.Resync, Now: time.Now, Logger: b.configs.Logger.WithName("observer"),
	}), nil
}

// ownerOf returns the Application that an object names, if this replica acts for it.
func (b *base) ownerOf(live map[string]any) (observer.Owner, bool) {
	owner, ok := application.OwnerOf(live)
	return owner, ok && b.tenure.Owns(owner.Namespace)
}

// newReconciler makes the loop's passes. Without an issuer it refuses Applications with hooks.
func (b *base) newReconciler(
	store *hub.Store, clusters reconcile.Clusters, observers *observer.Observers, kinds *discovery.Kinds, turns *rolloutLimiter, issuer *hooks.Issuer,
) (*reconcile.Reconciler, error) {
	fetched, err := sources.New(b.options.Sources)
	if err != nil {
		return nil, err
	}
	var secrets reconcile.Secrets
	var shutdowns reconcile.Shutdowns
	if issuer != nil {
		secrets, shutdowns = issuer, hooks.NewCaller(b.configs.DialService)
	}
	reporter := telemetry.NewReporter(b.events.Hub, b.events.Target, b.configs.Logger, b.counts, time.Now)
	return &reconcile.Reconciler{
		ClusterName: b.options.Cluster, Target: b.identity.UID, Scope: b.options.Reach.Scope, RequireAccount: b.options.RequireServiceAccount,
		Namespaces:   reconcile.Namespaces{Map: b.options.Namespaces.mapping(), Allowed: b.options.Namespaces.Target},
		Applications: store, Clusters: clusters, Observers: observers, Kinds: kinds, Sources: fetched, FieldManager: name, MaxHold: b.options.MaxHold,
		Secrets: secrets, Shutdowns: shutdowns, ShutdownDefaults: b.options.Hooks.ShutdownDefaults,
		Slots: semaphore.NewWeighted(int64((parallelWrites - 1) * b.options.Concurrency)), MayBegin: turns.take,
		Report: reporter.Report, Failing: reporter.Failing, Now: time.Now,
	}, nil
}

// register adds the metrics of the agent to the registry.
func (b *base) register(observers *observer.Observers, kinds *discovery.Kinds, reconciler *reconcile.Reconciler, turns *rolloutLimiter) error {
	registry, hubToken := b.configs.Registry, ""
	if b.configs.Hub != b.configs.Target {
		hubToken = b.configs.Hub.BearerTokenFile
	}
	return errors.Join(b.counts.Register(registry), registry.Register(&telemetry.Gauges{
		Applications: b.countStates, Stats: observers.Stats, Contended: reconciler.Contended, Waiting: turns.count,
		KindOf:   func(resource schema.GroupVersionResource) string { return b.counts.KindLabel(kinds.KindOf(resource)) },
		HubToken: hubToken,
	}))
}

// countStates counts the Applications by state, nil while they are not known.
func (b *base) countStates() map[application.State]int {
	if found, known := b.known.List(); known {
		return telemetry.CountStates(found, b.options.Cluster)
	}
	return nil
}

// addOnceActing adds what runs while this replica acts.
func (b *base) addOnceActing(run func(context.Context) error) error {
	return b.manager.Add(manager.RunnableFunc(right.OnceActing(b.tenure, run)))
}

// addLoop reconciles an Application when it changes, or when an observer notifies it.
// For the first list of Applications the loop waits without limit.
func (b *base) addLoop(store *hub.Store, loop *loop) error {
	return ctrl.NewControllerManagedBy(b.manager).
		Named("application").
		For(&corev1.ConfigMap{}, builder.WithPredicates(hub.IntentChanged(b.options.Cluster, store.RecordCached))).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(b.waitingFor)).
		WatchesRawSource(source.Func(b.notifications.start)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: b.options.Concurrency, RateLimiter: newBackoff(loop.turns.isWaiting), CacheSyncTimeout: math.MaxInt64,
			LogConstructor: logOf(b.configs.Logger.WithName("loop")),
		}).
		Complete(loop)
}

// waitingFor requests a pass for each Application that waits for a changed one before it begins.
func (b *base) waitingFor(_ context.Context, changed client.Object) []ctrl.Request {
	var requests []ctrl.Request
	for _, waiting := range b.known.WaitingFor(client.ObjectKeyFromObject(changed)) {
		requests = append(requests, ctrl.Request{NamespacedName: waiting})
	}
	return requests
}

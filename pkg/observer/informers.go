package observer

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

const (
	// missingPause is the pause before the next try for a kind that is not served.
	missingPause = time.Minute
	// askedPause is the shorter pause if an owner needs the kind.
	askedPause = 5 * time.Second
	// gatherPause is the idle time after the last owner's request for objects of a kind, before its
	// first list begins. longestGather is the longest delay of that list by requests, and longestCrowd
	// by Options.Crowded.
	gatherPause, longestGather, longestCrowd = 50 * time.Millisecond, 10 * time.Second, 2 * time.Minute
)

// informers run one informer for each kind in use. registry.mu guards them.
type informers struct {
	options  *Options
	registry *registry
	source   *source
	// ctx ends all informers.
	ctx   context.Context
	kinds map[scope]*kind

	missingPause, askedPause, gatherPause, longestGather, longestCrowd time.Duration
}

func newInformers(ctx context.Context, options *Options, v *registry) *informers {
	return &informers{
		options: options, registry: v, source: &source{options, v}, ctx: ctx, kinds: map[scope]*kind{},
		missingPause: missingPause, askedPause: askedPause, gatherPause: gatherPause, longestGather: longestGather, longestCrowd: longestCrowd,
	}
}

// acquireLocked returns the kind of a target, and starts its informer with the first user.
func (i *informers) acquireLocked(target Target) *kind {
	k := i.kindLocked(target)
	k.users++
	return k
}

func (i *informers) kindLocked(target Target) *kind {
	s := i.options.scopeOf(keyOf(target))
	if k := i.kinds[s]; k != nil {
		i.gatherLocked(k)
		return k
	}
	k := &kind{
		scope: s,
		id:    manifest.ID{APIVersion: target.APIVersion, Kind: target.Kind},
		err:   ErrNotSynced,
		due:   firstTurn(i.options),
	}
	i.kinds[s] = k
	if !i.options.watches(s) {
		k.err = ErrNamespace
		return k
	}
	now := i.options.Now()
	k.latest, k.anyway = now.Add(i.longestGather), now.Add(i.longestCrowd)
	k.starts = time.AfterFunc(i.gatherPause, func() { i.start(k) })
	return k
}

// gatherLocked delays the first list of a kind while owners request more of its objects, as all
// owners do when the process starts. An object that was listed before its owner requested it would
// have to be read again.
func (i *informers) gatherLocked(k *kind) {
	if k.starts != nil && k.failedAt.IsZero() && k.starts.Stop() {
		k.starts.Reset(max(0, min(i.gatherPause, k.latest.Sub(i.options.Now()))))
	}
}

// start starts the informer of a kind whose timer has ended, unless it has been stopped, or more
// owners are about to request objects.
func (i *informers) start(k *kind) {
	i.registry.mu.Lock()
	defer i.registry.mu.Unlock()
	if i.kinds[k.scope] != k || k.starts == nil || i.ctx.Err() != nil {
		return
	}
	if k.failedAt.IsZero() && i.options.Crowded != nil && i.options.Crowded() && i.options.Now().Before(k.anyway) {
		k.starts.Reset(i.gatherPause)
		return
	}
	k.starts = nil
	i.startLocked(k)
}

func (i *informers) startLocked(k *kind) {
	ctx, stop := context.WithCancel(i.ctx)
	next := &informer{
		SharedIndexInformer: i.source.newInformer(k.scope),
		stop:                stop,
		started:             i.options.Now(),
	}
	registration, err := i.connect(k, next)
	if err != nil {
		stop()
		i.failLocked(k, err)
		return
	}
	k.next = next
	go next.RunWithContext(ctx)
	go func() {
		select {
		case <-ctx.Done():
		case <-registration.HasSyncedChecker().Done():
			i.synced(k, next)
		}
	}()
}

// connect connects an informer before it starts.
func (i *informers) connect(k *kind, next *informer) (cache.ResourceEventHandlerRegistration, error) {
	if err := next.SetTransform(func(object any) (any, error) { return i.source.transform(k.resource, object), nil }); err != nil {
		return nil, err
	}
	failed := func(_ context.Context, _ *cache.Reflector, err error) { i.failed(k, next, err) }
	if err := next.SetWatchErrorHandlerWithContext(failed); err != nil {
		return nil, err
	}
	return next.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { i.registry.saw(k, next, nil, object) },
		UpdateFunc: func(former, object any) { i.registry.saw(k, next, former, object) },
		DeleteFunc: func(object any) { i.registry.lost(k, next, object) },
	})
}

// synced replaces the current informer by one that knows all objects of the kind.
func (i *informers) synced(k *kind, next *informer) {
	i.registry.mu.Lock()
	defer i.registry.mu.Unlock()
	if k.next != next {
		return // stopped
	}
	former := k.current
	k.current, k.next = next, nil
	i.registry.settleLocked(k, former)
	if former != nil {
		former.stop()
		i.options.Logger.Info("Replaced an informer", "of", k.String())
	}
	if k.err != nil {
		k.err = nil
		i.registry.notifyScopeLocked(k.scope)
	}
}

// failed records an error of list or watch. Known objects stay known while the informer tries
// again, unless the kind is no longer served.
func (i *informers) failed(k *kind, of *informer, err error) {
	i.registry.mu.Lock()
	defer i.registry.mu.Unlock()
	of.failed = true
	switch {
	case of != k.current && of != k.next: // stopped
	case apierrors.IsNotFound(err):
		i.dropLocked(k, err)
	case k.current == nil:
		i.failLocked(k, err)
	default:
		i.options.Logger.V(1).Info("An informer will try again", "of", k.String(), "reason", err.Error())
	}
}

// dropLocked stops the informer of a kind that is not served. Another one is started after a pause,
// which is shorter if an owner needs the kind. The kind may come back, and with another scope.
func (i *informers) dropLocked(k *kind, err error) {
	k.stop()
	k.failedAt = i.options.Now()
	k.starts = time.AfterFunc(i.missingPause, func() { i.start(k) })
	i.failLocked(k, err)
}

func (i *informers) failLocked(k *kind, err error) {
	if k.err != nil && (k.err.Error() == err.Error() || apierrors.IsNotFound(k.err) && apierrors.IsNotFound(err)) {
		return
	}
	k.err = err
	i.options.Logger.Info("Objects of a kind cannot be watched", "of", k.String(), "reason", err.Error())
	i.registry.notifyScopeLocked(k.scope)
}

// askLocked advances the next try for a kind that is not served.
func (i *informers) askLocked(k *kind) {
	if k.starts != nil && !k.failedAt.IsZero() {
		k.starts.Reset(max(0, k.failedAt.Add(i.askedPause).Sub(i.options.Now())))
	}
}

// releaseLocked stops the informer of a scope with its last user.
func (i *informers) releaseLocked(s scope) {
	k := i.kinds[s]
	k.users--
	if k.users == 0 {
		k.stop()
		delete(i.kinds, s)
	}
}

// firstTurn returns the time of the first comparison of a new kind: a random time within the
// interval.
func firstTurn(options *Options) time.Time {
	return options.Now().Add(wait.Jitter(options.Resync/100, 99))
}

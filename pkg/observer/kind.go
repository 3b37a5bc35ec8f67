package observer

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

const (
	// missingPause is how long a kind that is not served is left alone.
	missingPause = time.Minute
	// askedPause is the same for a kind that an owner asks for meanwhile.
	askedPause = 5 * time.Second
	// gatherPause is how long nobody must have asked for another object of a kind before
	// its first list begins, longestGather the longest time that this may take.
	gatherPause, longestGather = 50 * time.Millisecond, 10 * time.Second
)

// scope is what one informer watches: a resource, in one namespace or, without a
// name, in all of the cluster.
type scope struct {
	resource  schema.GroupVersionResource
	namespace string
}

// String gives "/v1, Resource=pods" and "/v1, Resource=pods in namespace demo".
func (s scope) String() string {
	if s.namespace == metav1.NamespaceAll {
		return s.resource.String()
	}
	return s.resource.String() + " in namespace " + s.namespace
}

// scopeOf gives the scope that an object is in. Objects of the cluster have no
// namespace, so that theirs is all of it whatever Options.Namespaces says.
func (o *Observers) scopeOf(at key) scope {
	if len(o.Namespaces) == 0 {
		return scope{resource: at.resource}
	}
	return scope{at.resource, at.namespace}
}

// within tells if the Options have a scope watched.
func (o *Observers) within(s scope) bool {
	return s.namespace == metav1.NamespaceAll || slices.Contains(o.Namespaces, s.namespace)
}

// kind is one kind of resource that is observed, in one scope.
type kind struct {
	scope

	// id is the type of its objects, without a name.
	id manifest.ID
	// users counts the views of objects of this kind.
	users int
	// err tells why the objects of the kind are not known: ErrNotSynced at
	// first, later perhaps what the API server answers to the list.
	err error

	// current is the informer whose objects are known, nil before the first has
	// listed them, and while the kind is not served.
	current *informer
	// next takes the place of current as soon as it is synced.
	next *informer
	// again starts an informer of a kind that was not served at failedAt.
	again    *time.Timer
	failedAt time.Time
	// due is when to compare a list with what is known.
	due time.Time
	// begins starts the first informer, at latest then; nil: it has begun.
	begins *time.Timer
	latest time.Time
}

// informer is one run of an informer: after it was stopped another is needed.
type informer struct {
	cache.SharedIndexInformer

	stop    context.CancelFunc
	started time.Time
	// failed: a list or a watch of it was answered by an error.
	failed bool
}

// kindLocked gives the kind of a target, with its informer on the way.
func (o *Observers) kindLocked(target Target) *kind {
	s := o.scopeOf(keyOf(target))
	if k := o.kinds[s]; k != nil {
		o.gatherLocked(k)
		return k
	}
	k := &kind{
		scope: s,
		id:    manifest.ID{APIVersion: target.APIVersion, Kind: target.Kind},
		err:   ErrNotSynced,
		due:   o.firstResync(),
	}
	o.kinds[s] = k
	if !o.within(s) {
		k.err = ErrNamespace
		return k
	}
	k.latest = o.Now().Add(o.longestGather)
	k.begins = time.AfterFunc(o.gatherPause, func() { o.begin(k) })
	return k
}

// gatherLocked has the first list of a kind wait for those who ask for objects of it one
// after the other, as all do when the process starts. What was listed before somebody
// asked for it would have to be read once more, object by object.
func (o *Observers) gatherLocked(k *kind) {
	if k.begins != nil && k.begins.Stop() {
		k.begins.Reset(max(0, min(o.gatherPause, k.latest.Sub(o.Now()))))
	}
}

func (o *Observers) begin(k *kind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kinds[k.scope] != k || o.ctx.Err() != nil {
		return
	}
	k.begins = nil
	o.startLocked(k)
}

// startLocked starts the next informer of a kind.
func (o *Observers) startLocked(k *kind) {
	ctx, stop := context.WithCancel(o.ctx)
	next := &informer{
		SharedIndexInformer: o.newInformer(k.scope),
		stop:                stop,
		started:             o.Now(),
	}
	registration, err := o.connect(k, next)
	if err != nil {
		stop()
		o.failLocked(k, err)
		return
	}
	k.next = next
	go next.RunWithContext(ctx)
	go func() {
		select {
		case <-ctx.Done():
		case <-registration.HasSyncedChecker().Done():
			o.synced(k, next)
		}
	}()
}

// connect connects an informer before it starts.
func (o *Observers) connect(k *kind, next *informer) (cache.ResourceEventHandlerRegistration, error) {
	if err := next.SetTransform(func(object any) (any, error) { return o.look(k.resource, object), nil }); err != nil {
		return nil, err
	}
	failed := func(_ context.Context, _ *cache.Reflector, err error) { o.failed(k, next, err) }
	if err := next.SetWatchErrorHandlerWithContext(failed); err != nil {
		return nil, err
	}
	return next.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { o.saw(k, next, nil, object) },
		UpdateFunc: func(former, object any) { o.saw(k, next, former, object) },
		DeleteFunc: func(object any) { o.lost(k, next, object) },
	})
}

// synced puts an informer in its place: all objects of the kind are known to it.
func (o *Observers) synced(k *kind, next *informer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k.next != next {
		return // stopped
	}
	former := k.current
	k.current, k.next = next, nil
	o.settleLocked(k, former)
	if former != nil {
		former.stop()
		o.Logger.Info("Replaced an informer", "of", k.String())
	}
	if k.err != nil {
		k.err = nil
		o.notifyKindLocked(k)
	}
}

// failed takes note of an error of list or watch. Once the objects are known,
// what is known of them stays good while the informer goes on trying; but a kind
// that is not served any more has no objects to know.
func (o *Observers) failed(k *kind, of *informer, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of.failed = true
	switch {
	case of != k.current && of != k.next: // stopped
	case apierrors.IsNotFound(err):
		o.dropLocked(k, err)
	case k.current == nil:
		o.failLocked(k, err)
	default:
		o.Logger.V(1).Info("An informer is to try again", "of", k.String(), "reason", err.Error())
	}
}

// dropLocked stops the informer of a kind that is not served. Another is started
// after a pause, a shorter one if an owner asks for it: the kind may come back,
// and with another scope.
func (o *Observers) dropLocked(k *kind, err error) {
	k.stop()
	k.failedAt = o.Now()
	k.again = time.AfterFunc(o.missingPause, func() { o.retry(k) })
	o.failLocked(k, err)
}

func (o *Observers) failLocked(k *kind, err error) {
	if k.err != nil && (k.err.Error() == err.Error() || apierrors.IsNotFound(k.err) && apierrors.IsNotFound(err)) {
		return
	}
	k.err = err
	o.Logger.Info("Objects of a kind cannot be watched", "of", k.String(), "reason", err.Error())
	o.notifyKindLocked(k)
}

// askLocked has a kind that is not served tried again before long.
func (o *Observers) askLocked(k *kind) {
	if k.again != nil {
		k.again.Reset(max(0, k.failedAt.Add(o.askedPause).Sub(o.Now())))
	}
}

func (o *Observers) retry(k *kind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kinds[k.scope] != k || k.again == nil || o.ctx.Err() != nil {
		return
	}
	k.again = nil
	o.startLocked(k)
}

// releaseLocked stops the informer with its last user.
func (o *Observers) releaseLocked(s scope) {
	k := o.kinds[s]
	k.users--
	if k.users == 0 {
		k.stop()
		delete(o.kinds, s)
	}
}

func (k *kind) stop() {
	for _, running := range []*informer{k.current, k.next} {
		if running != nil {
			running.stop()
		}
	}
	k.current, k.next = nil, nil
	if k.again != nil {
		k.again.Stop()
		k.again = nil
	}
	if k.begins != nil {
		k.begins.Stop()
	}
}

func (o *Observers) notifyKindLocked(k *kind) {
	for name, own := range o.owners {
		if o.needsLocked(own, k) {
			o.Notify(name)
		}
	}
}

func (o *Observers) needsLocked(own *owner, k *kind) bool {
	for at := range own.views {
		if o.scopeOf(at) == k.scope {
			return true
		}
	}
	return false
}

// record gives what is kept of an object, or nil.
func (i *informer) record(at key) *record {
	if i == nil {
		return nil
	}
	name := cache.NewObjectName(at.namespace, at.name).String()
	object, exists, err := i.GetStore().GetByKey(name)
	if err != nil || !exists {
		return nil
	}
	found, _ := object.(*record)
	return found
}

// records gives what is kept of all objects.
func (i *informer) records() []*record {
	if i == nil {
		return nil
	}
	return recordsOf(i.GetStore().List())
}

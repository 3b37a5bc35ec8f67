package observer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// kind is the informer of one kind of resource.
type kind struct {
	resource schema.GroupVersionResource
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	// users counts the views of objects of this kind.
	users int
	// err tells why the objects of the kind are not known: ErrNotSynced at
	// first, later perhaps what the API server answers to the list.
	err error
}

// record is what an informer keeps of an object: its identity, and what each
// owner saw when the whole object was at hand.
type record struct {
	metav1.ObjectMeta

	views []seenBy
}

type seenBy struct {
	owner    Owner
	revision string
	Observation
}

// GetObjectKind and DeepCopyObject make a record what informers store.
func (r *record) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject shares the observations, which nobody changes.
func (r *record) DeepCopyObject() runtime.Object {
	copied := &record{views: r.views}
	r.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return copied
}

// startKindLocked gives the running informer of a kind, or starts one.
func (o *Observers) startKindLocked(resource schema.GroupVersionResource) *kind {
	if running := o.kinds[resource]; running != nil {
		return running
	}
	ctx, stop := context.WithCancel(o.ctx)
	k := &kind{
		resource: resource,
		informer: dynamicinformer.NewFilteredDynamicInformer(o.Client, resource, metav1.NamespaceAll, 0,
			cache.Indexers{}, func(options *metav1.ListOptions) { options.LabelSelector = o.Selector }).Informer(),
		stop: stop,
		err:  ErrNotSynced,
	}
	o.kinds[resource] = k
	if err := o.run(ctx, k); err != nil {
		k.err = err
	}
	return k
}

// run connects the informer before it starts.
func (o *Observers) run(ctx context.Context, k *kind) error {
	if err := k.informer.SetTransform(func(object any) (any, error) { return o.look(k.resource, object), nil }); err != nil {
		return err
	}
	failed := func(_ context.Context, _ *cache.Reflector, err error) { o.failed(k, err) }
	if err := k.informer.SetWatchErrorHandlerWithContext(failed); err != nil {
		return err
	}
	registration, err := k.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { o.saw(k, object) },
		UpdateFunc: func(_, object any) { o.saw(k, object) },
		DeleteFunc: func(object any) { o.lost(k, object) },
	})
	if err != nil {
		return err
	}
	go k.informer.RunWithContext(ctx)
	go func() {
		select {
		case <-ctx.Done():
		case <-registration.HasSyncedChecker().Done():
			o.synced(k)
		}
	}()
	return nil
}

// releaseKindLocked stops the informer with its last user.
func (o *Observers) releaseKindLocked(resource schema.GroupVersionResource) {
	running := o.kinds[resource]
	running.users--
	if running.users == 0 {
		running.stop()
		delete(o.kinds, resource)
	}
}

func (o *Observers) synced(k *kind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k.err = nil
	o.notifyKindLocked(k)
}

// failed takes note of an error of list or watch. Once a kind is synced, what
// is known of it stays good: the informer goes on trying.
func (o *Observers) failed(k *kind, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k.err == nil || k.err.Error() == err.Error() {
		return
	}
	k.err = err
	o.notifyKindLocked(k)
}

func (o *Observers) notifyKindLocked(k *kind) {
	if o.kinds[k.resource] != k {
		return // nobody needs it any more
	}
	for name, own := range o.owners {
		if own.needs(k.resource) {
			o.Notify(name)
		}
	}
}

func (own *owner) needs(resource schema.GroupVersionResource) bool {
	for at := range own.views {
		if at.resource == resource {
			return true
		}
	}
	return false
}

// look is the informer's transform: the last to have the whole object.
func (o *Observers) look(resource schema.GroupVersionResource, object any) any {
	live, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object // a tombstone, or looked at already
	}
	now := o.Now()
	seen := &record{ObjectMeta: metav1.ObjectMeta{
		Namespace: live.GetNamespace(), Name: live.GetName(), UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(),
	}}
	o.mu.RLock()
	defer o.mu.RUnlock()
	for _, v := range o.watched[key{resource, seen.Namespace, seen.Name}] {
		seen.views = append(seen.views, seenBy{v.owner, v.target.Revision, v.target.observe(live.Object, now)})
	}
	return seen
}

// saw hands an event over to the owners of the object.
func (o *Observers) saw(k *kind, object any) {
	seen, ok := object.(*record)
	if !ok {
		return
	}
	at := key{k.resource, seen.Namespace, seen.Name}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, v := range o.watched[at] {
		observation := seen.as(v, o)
		if observation.supersedes(v.last) {
			v.last = observation
			o.eventLocked(at, v)
		}
	}
}

// as gives what the owner of the view saw. Without its target's present
// revision the object has to be read again.
func (r *record) as(v *view, o *Observers) Observation {
	for _, s := range r.views {
		if s.owner == v.owner && s.revision == v.target.Revision {
			return s.Observation
		}
	}
	return Observation{UID: r.UID, ResourceVersion: r.ResourceVersion, Stale: true, Seen: o.Now()}
}

// lost tells the owners that an object is gone, or that it lost its label: only
// a read can tell which.
func (o *Observers) lost(k *kind, object any) {
	tombstone, missed := object.(cache.DeletedFinalStateUnknown)
	if missed {
		object = tombstone.Obj
	}
	gone, ok := object.(*record)
	if !ok {
		return
	}
	lost := Observation{ResourceVersion: gone.ResourceVersion, Seen: o.Now()}
	if missed {
		lost.ResourceVersion = "" // that of the last sight: when it was lost is not known
	}
	at := key{k.resource, gone.Namespace, gone.Name}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, v := range o.watched[at] {
		// The owner may have created another one already.
		if v.last.UID == gone.UID {
			v.last = lost
			o.eventLocked(at, v)
		}
	}
}

// eventLocked notifies the owner if it has to act, now or after it has acted.
func (o *Observers) eventLocked(at key, v *view) {
	own := o.owners[v.owner]
	switch {
	case own == nil:
	case own.waiting:
		own.waited[at] = true
	case v.last.Differs():
		o.Notify(v.owner)
	}
}

// record gives what the informer keeps of an object, or nil.
func (k *kind) record(at key) *record {
	name := cache.NewObjectName(at.namespace, at.name).String()
	object, exists, err := k.informer.GetStore().GetByKey(name)
	if err != nil || !exists {
		return nil
	}
	found, _ := object.(*record)
	return found
}

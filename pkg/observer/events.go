package observer

import (
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// saw reports the event of an object to its owners.
func (r *registry) saw(k *kind, by *informer, former, object any) {
	seen, ok := object.(*record)
	if !ok {
		return
	}
	before, _ := former.(*record)
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.current != by {
		return // not yet in its place, or stopped
	}
	r.sawLocked(seen.key(k.resource), seen)
	r.strayLocked(k.resource, before, seen)
}

// lost reports to its owners that an object is gone, or has lost its label: only a read can
// distinguish them.
func (r *registry) lost(k *kind, by *informer, object any) {
	tombstone, missed := object.(cache.DeletedFinalStateUnknown)
	if missed {
		object = tombstone.Obj
	}
	gone, ok := object.(*record)
	if !ok {
		return
	}
	lost := Observation{ResourceVersion: gone.version, Seen: r.options.Now(), Summary: gone.summary}
	if missed {
		lost.ResourceVersion = "" // known only for the last event, not for the loss
	}
	at := gone.key(k.resource)
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.current != by {
		return // not yet in its place, or stopped
	}
	for _, one := range r.viewsLocked(at) {
		// The owner may have created another one already.
		if one.last.UID == gone.uid {
			one.last = lost
			r.eventLocked(at, one)
		}
	}
	r.strayLocked(k.resource, gone, nil)
}

// settleLocked reports the objects that a new informer has listed, and the disappearance of others.
// It replaces the events before the list.
func (r *registry) settleLocked(k *kind, former *informer) {
	version := k.current.LastSyncResourceVersion()
	for at, views := range r.watched[k.scope] {
		if found := k.current.record(at); found != nil {
			r.sawLocked(at, found)
			continue
		}
		for _, one := range views {
			// The objects that the owner has created since the list are not in the list yet.
			order, err := resourceversion.CompareResourceVersion(one.last.ResourceVersion, version)
			if created := err == nil && order > 0; one.last.Exists() && !created {
				one.last = Observation{Seen: r.options.Now(), Summary: one.last.Summary}
				r.eventLocked(at, one)
			}
		}
	}
	for _, found := range k.current.records() {
		found.views = nil
		r.strayLocked(k.resource, former.record(found.key(k.resource)), found)
	}
}

package observer

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// look is the informer's transform: the last to have the whole object, unless it is a
// record already.
func (o *Observers) look(resource schema.GroupVersionResource, object any) any {
	live, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object // a tombstone, or looked at already
	}
	return o.lookAt(o.sight(resource, live.Object), func() Whole { return wholeOf(live.Object) })
}

// lookAt makes the record of an object. Of one that differs, all is asked for.
func (o *Observers) lookAt(s sight, whole func() Whole) *record {
	seen := newRecord(s.live)
	seen.owner = o.ownerOf(s.live)
	summary, err := o.summarise(s.live)
	seen.summary = summary
	now := o.Now()
	for _, w := range s.watchers {
		observation, same := w.unchanged(s.fingerprint, s.live, now)
		if !same {
			observation = o.observe(w.target, s.live, whole, now)
			observation.fingerprint = s.fingerprint
		}
		observation.Summary, observation.Err = summary, first(observation.Err, err)
		seen.views = append(seen.views, seenBy{observation, w.owner, w.target.Revision})
	}
	return seen
}

// saw hands an event over to the owners of the object.
func (o *Observers) saw(k *kind, by *informer, former, object any) {
	seen, ok := object.(*record)
	if !ok {
		return
	}
	before, _ := former.(*record)
	o.mu.Lock()
	defer o.mu.Unlock()
	if k.current != by {
		return // not yet in its place, or no more
	}
	o.sawLocked(seen.key(k.resource), seen)
	o.strayLocked(k, before, seen)
}

func (o *Observers) sawLocked(at key, seen *record) {
	for _, v := range o.watched[at] {
		s := o.as(seen, v)
		if s.supersedes(v.last) {
			v.last = s.Observation
			o.eventLocked(at, v)
		}
	}
	seen.views = nil // the owners have it now
}

// as gives what the owner of the view saw. Without its target's present
// revision the object has to be read again.
func (o *Observers) as(seen *record, v *view) seenBy {
	for _, s := range seen.views {
		if s.owner == v.owner && s.revision == v.target.Revision {
			return s
		}
	}
	stale := seen.stale()
	stale.Seen = o.Now()
	return seenBy{Observation: stale}
}

// lost tells the owners that an object is gone, or that it lost its label: only
// a read can tell which.
func (o *Observers) lost(k *kind, by *informer, object any) {
	tombstone, missed := object.(cache.DeletedFinalStateUnknown)
	if missed {
		object = tombstone.Obj
	}
	gone, ok := object.(*record)
	if !ok {
		return
	}
	lost := Observation{ResourceVersion: gone.version, Seen: o.Now()}
	if missed {
		lost.ResourceVersion = "" // that of the last sight: when it was lost is not known
	}
	at := gone.key(k.resource)
	o.mu.Lock()
	defer o.mu.Unlock()
	if k.current != by {
		return // not yet in its place, or no more
	}
	for _, v := range o.watched[at] {
		// The owner may have created another one already.
		if v.last.UID == gone.uid {
			o.goneLocked(at, v, lost)
		}
	}
}

func (o *Observers) goneLocked(at key, v *view, lost Observation) {
	v.last = lost
	o.eventLocked(at, v)
}

// eventLocked notifies the owner if it has to act, now or after it has acted.
func (o *Observers) eventLocked(at key, v *view) {
	own := o.owners[v.owner]
	switch {
	case own == nil:
	case own.waiting:
		own.waited[at] = true
	case v.tellLocked():
		o.Notify(v.owner)
	}
}

// tellLocked tells if the owner has to hear of what was seen last, and takes it
// as told.
func (v *view) tellLocked() bool {
	news := v.last.Differs() || v.last.Summary != v.told
	v.told = v.last.Summary
	return news
}

// settleLocked brings what owners know of a kind to what its new informer has
// listed. What happened before is not told as events.
func (o *Observers) settleLocked(k *kind, former *informer) {
	version := k.current.LastSyncResourceVersion()
	for at, views := range o.watched {
		if o.scopeOf(at) != k.scope {
			continue
		}
		if found := k.current.record(at); found != nil {
			o.sawLocked(at, found)
			continue
		}
		for _, v := range views {
			// What its owner has created since is still to come.
			order, err := resourceversion.CompareResourceVersion(v.last.ResourceVersion, version)
			if created := err == nil && order > 0; v.last.Exists() && !created {
				o.goneLocked(at, v, Observation{Seen: o.Now()})
			}
		}
	}
	for _, found := range k.current.records() {
		found.views = nil
		o.strayLocked(k, former.record(found.key(k.resource)), found)
	}
}

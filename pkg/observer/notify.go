package observer

import (
	"unique"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"
)

// sawLocked records an event of an object for its owners, unless they know a newer version.
func (r *registry) sawLocked(at key, seen *record) {
	for _, one := range r.viewsLocked(at) {
		s := r.observationOf(seen, one)
		if s.supersedes(one.last) {
			one.last = s
			r.eventLocked(at, one)
		}
	}
	seen.views = nil // the owners have it now
}

// observationOf returns the observation for the owner of the view. If the object was not inspected
// for the present revision of the target, the observation is stale.
func (r *registry) observationOf(seen *record, of *view) Observation {
	for _, s := range seen.views {
		if s.owner == of.owner && s.revision == of.target.Revision {
			return s.Observation
		}
	}
	stale := seen.stale()
	stale.Seen = r.options.Now()
	return stale
}

// eventLocked notifies the owner if it has to act, now or after it has acted.
func (r *registry) eventLocked(at key, of *view) {
	own := r.owners[of.owner]
	switch {
	case own == nil:
	case own.waiting:
		own.waited[at] = true
	case of.reportLocked():
		r.options.Notify(of.owner)
	}
}

// reportLocked marks the last observation as reported, and reports whether the owner has to act on
// it.
func (v *view) reportLocked() (act bool) {
	act = v.last.Differs() || v.last.Summary != v.reported
	v.reported = v.last.Summary
	return act
}

// resumeLocked ends the waiting of an owner, and notifies it of events in the meantime.
func (r *registry) resumeLocked(name Owner, own *ownerState) {
	notify := own.stray
	for k := range own.waited {
		if one := own.views[k]; one != nil && one.reportLocked() {
			notify = true
		}
	}
	own.waiting, own.waited, own.stray = false, map[key]bool{}, false
	if notify {
		r.options.Notify(name)
	}
}

// strayLocked notifies the owners of a stray that appears, changes its owner, or is gone. before is nil for
// a new object, seen for one that is gone.
func (r *registry) strayLocked(resource gvr.GroupVersionResource, before, seen *record) {
	if before != nil && seen != nil && before.owner == seen.owner && before.uid == seen.uid {
		return
	}
	for _, one := range []*record{before, seen} {
		if one == nil || one.owner == (unique.Handle[Owner]{}) {
			continue
		}
		name := one.owner.Value()
		own := r.owners[name]
		switch {
		case own == nil || own.views[one.key(resource)] != nil:
		case own.waiting:
			own.stray = true
		default:
			r.options.Notify(name)
		}
	}
}

// notifyScopeLocked notifies all owners that observe an object of the scope.
func (r *registry) notifyScopeLocked(in scope) {
	notified := map[Owner]bool{}
	for _, views := range r.watched[in] {
		for _, one := range views {
			if !notified[one.owner] {
				notified[one.owner] = true
				r.options.Notify(one.owner)
			}
		}
	}
}

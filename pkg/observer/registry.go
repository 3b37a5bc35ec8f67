package observer

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
)

// registry has the targets of all owners, with their last observations.
type registry struct {
	options   *Options
	inspector *inspector

	// mu guards the registry, and the informers as well, because the reports of informers and the
	// knowledge of owners change together.
	mu     sync.RWMutex
	owners map[Owner]*ownerState
	// watched are the owners' views of an object, by the scope of the object.
	watched map[scope]map[key][]*view
}

// ownerState is the state of one owner.
type ownerState struct {
	views map[key]*view
	// waiting reports that the owner acts, so its events wait.
	waiting bool
	// waited are the objects that had an event while the owner waited.
	waited map[key]bool
	// stray reports that an object that is none of the owner's targets appeared or was lost while the owner
	// waited.
	stray bool
}

func newRegistry(options *Options) *registry {
	return &registry{options: options, inspector: &inspector{options}, owners: map[Owner]*ownerState{}, watched: map[scope]map[key][]*view{}}
}

// viewsLocked returns the owners' views of an object.
func (r *registry) viewsLocked(at key) []*view { return r.watched[r.options.scopeOf(at)][at] }

// setViewsLocked sets the owners' views of an object.
func (r *registry) setViewsLocked(at key, views []*view) {
	in := r.options.scopeOf(at)
	switch {
	case len(views) > 0 && r.watched[in] == nil:
		r.watched[in] = map[key][]*view{at: views}
	case len(views) > 0:
		r.watched[in][at] = views
	default:
		if delete(r.watched[in], at); len(r.watched[in]) == 0 {
			delete(r.watched, in)
		}
	}
}

// viewsOf returns copies of the views that observe an object now.
func (r *registry) viewsOf(resource gvr.GroupVersionResource, live *unstructured.Unstructured) (views []view) {
	at := key{resource, live.GetNamespace(), live.GetName()}
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, one := range r.viewsLocked(at) {
		views = append(views, *one)
	}
	return views
}

// addLocked adds a view. found is the object's record from a time without views, or nil.
func (r *registry) addLocked(name Owner, target Target, found *record) *view {
	added := &view{owner: name, target: target}
	if found != nil {
		added.last = found.stale()
		added.last.Seen = r.options.Now()
		added.reported = added.last.Summary
	}
	at := keyOf(target)
	r.setViewsLocked(at, append(r.viewsLocked(at), added))
	return added
}

// reviseLocked replaces the target of a view. An observation under another revision is stale.
func (v *view) reviseLocked(target Target) {
	if v.target.Revision != target.Revision {
		v.last.Stale = v.last.Exists()
		v.last.Live, v.last.Err = nil, nil
	}
	v.target = target // if it is the same, the owner has this one, whose memory it shares
}

func (r *registry) removeLocked(at key, removed *view) {
	r.setViewsLocked(at, slices.DeleteFunc(r.viewsLocked(at), func(other *view) bool { return other == removed }))
}

// readLocked records an object that the owner has read or written.
func (r *registry) readLocked(own *ownerState, live *unstructured.Unstructured) {
	for at, one := range own.views {
		if at.name != live.GetName() || at.namespace != live.GetNamespace() || one.target.GroupVersionKind() != live.GroupVersionKind() {
			continue
		}
		if own.waited[at] && !one.last.Exists() && one.last.ResourceVersion == "" {
			continue // lost while the owner acted, perhaps after it saw the object
		}
		observation := r.inspector.inspectFor(one.target, live)
		taken := one.last.Stale && one.last.ResourceVersion == observation.ResourceVersion || observation.supersedes(one.last)
		if taken {
			one.last = observation
		}
		if taken || own.waited[at] {
			one.reported = observation.Summary // an event after it may bring another one
		}
	}
}

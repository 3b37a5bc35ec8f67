package observer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Observers are the informers of one cluster, with the targets of their owners. Its methods are
// safe for concurrent use. Calls for the same owner must not overlap.
type Observers struct {
	options   *Options
	registry  *registry
	informers *informers
	resync    *resyncer
}

// New makes Observers whose informers end with the context.
func New(ctx context.Context, options Options) *Observers {
	o := &Observers{options: &options, registry: newRegistry(&options)}
	o.informers = newInformers(ctx, o.options, o.registry)
	o.resync = newResyncer(o.options, o.informers)
	return o
}

// Observe sets the owner's targets, starts the missing informers, and returns the last observation
// of each target. Until Start, the owner's events wait. If the objects of a kind are not known,
// each of its targets has an error: ErrNotSynced, or the API server's answer to list or watch. The
// owner is notified when that changes. A kind that is not served is tried again from time to time,
// and sooner if an owner observes it again.
func (o *Observers) Observe(name Owner, targets []Target) []Observation {
	o.registry.mu.Lock()
	defer o.registry.mu.Unlock()
	own := o.registry.owners[name]
	if own == nil {
		own = &ownerState{waited: map[key]bool{}}
		o.registry.owners[name] = own
	}
	own.waiting = true
	o.setTargetsLocked(name, own, targets)

	current := make([]Observation, 0, len(targets))
	for _, target := range targets {
		at := keyOf(target)
		v := own.views[at]
		v.reported = v.last.Summary
		known := v.last
		if k := o.informers.kinds[o.options.scopeOf(at)]; k.err != nil {
			known.Err = fmt.Errorf("watch %s: %w", target.ID, k.err)
			o.informers.askLocked(k)
		}
		current = append(current, known)
	}
	return current
}

// Start resumes the delivery of the owner's events. seen are objects that the owner itself has read
// or written since Observe. If a newer event arrived in the meantime and requires action, the owner
// is notified.
func (o *Observers) Start(name Owner, targets []Target, seen []map[string]any) {
	o.registry.mu.Lock()
	defer o.registry.mu.Unlock()
	own := o.registry.owners[name]
	if own == nil {
		return
	}
	o.setTargetsLocked(name, own, targets)
	for _, live := range seen {
		o.registry.readLocked(own, &unstructured.Unstructured{Object: live})
	}
	o.registry.resumeLocked(name, own)
}

// Stop ends the observation of all targets of the owner, and the informers
// that no other owner needs.
func (o *Observers) Stop(name Owner) {
	o.registry.mu.Lock()
	defer o.registry.mu.Unlock()
	own := o.registry.owners[name]
	if own == nil {
		return
	}
	o.setTargetsLocked(name, own, nil)
	delete(o.registry.owners, name)
}

// setTargetsLocked keeps the observations of the targets that stay.
func (o *Observers) setTargetsLocked(name Owner, own *ownerState, targets []Target) {
	former := own.views
	own.views = make(map[key]*view, len(targets))
	for _, target := range targets {
		at := keyOf(target)
		v := former[at]
		if v == nil {
			k := o.informers.acquireLocked(target)
			v = o.registry.addLocked(name, target, k.current.record(at))
		} else {
			v.reviseLocked(target)
		}
		own.views[at] = v
	}
	for at, v := range former {
		if own.views[at] == nil {
			o.registry.removeLocked(at, v)
			o.informers.releaseLocked(o.options.scopeOf(at))
		}
	}
}

// Resync compares lists of the observed kinds with the known objects, each kind once in the
// interval, until the context ends. It replaces the informer of a watch that has lost an event or
// has fallen silent. Without an interval it compares only when [Observers.ResyncNow] requests it.
func (o *Observers) Resync(ctx context.Context) error { return o.resync.run(ctx) }

// ResyncNow makes [Observers.Resync] compare every kind within a few seconds. That is useful after
// an outage of the API server, because an informer waits for up to half a minute before it tries
// again. ResyncNow does not block. Calls before the comparison starts count as one.
func (o *Observers) ResyncNow() {
	select {
	case o.resync.hurry <- struct{}{}:
	default: // a comparison is requested already
	}
}

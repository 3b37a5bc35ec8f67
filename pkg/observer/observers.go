package observer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// ErrNotSynced is the answer of [Observers.Observe] while the objects of a kind
// are not all known yet. The owner is notified when they are.
var ErrNotSynced = errors.New("not synced yet")

// Options say what to observe and whom to tell.
type Options struct {
	Client dynamic.Interface
	// Selector is the label selector of all objects that any owner has.
	Selector string
	// Notify is called when an owner has to act. It must not block.
	Notify func(Owner)
	Now    func() time.Time
}

// Observers are the informers of one cluster. Its methods are safe for
// concurrent use; those for one owner must be called one after the other.
type Observers struct {
	Options

	// ctx ends all informers.
	ctx context.Context

	mu     sync.RWMutex
	kinds  map[schema.GroupVersionResource]*kind
	owners map[Owner]*owner
	// watched finds the owners' views of an object.
	watched map[key][]*view
}

// key is an object of a kind.
type key struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// owner is what is known of one owner.
type owner struct {
	views map[key]*view
	// waiting: the owner acts, so its events wait.
	waiting bool
	// waited are the objects that had an event meanwhile.
	waited map[key]bool
}

// view is how one owner sees one object.
type view struct {
	owner  Owner
	target Target
	last   Observation
}

// New makes Observers whose informers end with the context.
func New(ctx context.Context, options Options) *Observers {
	return &Observers{
		Options: options,
		ctx:     ctx,
		kinds:   map[schema.GroupVersionResource]*kind{},
		owners:  map[Owner]*owner{},
		watched: map[key][]*view{},
	}
}

// Observe says what the owner wants observed from now on, starts the informers
// that are missing, and gives what is known of each target. Until Start, the
// owner's events wait. The error is ErrNotSynced, or that of an informer that
// cannot list its kind; in both cases the owner is notified when that changes.
func (o *Observers) Observe(name Owner, targets []Target) ([]Observation, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	own := o.owners[name]
	if own == nil {
		own = &owner{waited: map[key]bool{}}
		o.owners[name] = own
	}
	own.waiting = true
	o.setTargetsLocked(name, own, targets)

	var failures []error
	current := make([]Observation, 0, len(targets))
	for _, target := range targets {
		if err := o.kinds[target.Resource].err; err != nil {
			failures = append(failures, fmt.Errorf("watch %s: %w", target.Ref, err))
		}
		current = append(current, own.views[keyOf(target)].last)
	}
	return current, errors.Join(failures...)
}

// Start lets the owner's events flow again. seen are objects that the owner
// itself has read or written since Observe. If an event that came meanwhile is
// newer than those, and asks for action, the owner is notified.
func (o *Observers) Start(name Owner, targets []Target, seen []map[string]any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	own := o.owners[name]
	if own == nil {
		return
	}
	o.setTargetsLocked(name, own, targets)
	for _, live := range seen {
		own.sawLocked(live, o.Now())
	}
	notify := false
	for k := range own.waited {
		if v := own.views[k]; v != nil && v.last.Differs() {
			notify = true
		}
	}
	own.waiting, own.waited = false, map[key]bool{}
	if notify {
		o.Notify(name)
	}
}

// Stop ends the observation of all that the owner wanted, and the informers
// that nobody else needs.
func (o *Observers) Stop(name Owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	own := o.owners[name]
	if own == nil {
		return
	}
	o.setTargetsLocked(name, own, nil)
	delete(o.owners, name)
}

// setTargetsLocked keeps what is known of the targets that stay.
func (o *Observers) setTargetsLocked(name Owner, own *owner, targets []Target) {
	former := own.views
	own.views = make(map[key]*view, len(targets))
	for _, target := range targets {
		k := keyOf(target)
		v := former[k]
		switch {
		case v == nil:
			v = o.addLocked(name, target)
		case v.target.Revision != target.Revision:
			v.target = target
			v.last.Stale = v.last.Exists()
			v.last.Live = nil
		}
		own.views[k] = v
	}
	for k, v := range former {
		if own.views[k] == nil {
			o.forgetLocked(k, v)
		}
	}
}

func (o *Observers) addLocked(name Owner, target Target) *view {
	k := keyOf(target)
	running := o.startKindLocked(k.resource)
	running.users++
	v := &view{owner: name, target: target}
	// The object may be known from a time when nobody wanted it.
	if found := running.record(k); found != nil {
		v.last = Observation{UID: found.UID, ResourceVersion: found.ResourceVersion, Stale: true, Seen: o.Now()}
	}
	o.watched[k] = append(o.watched[k], v)
	return v
}

func (o *Observers) forgetLocked(k key, v *view) {
	o.watched[k] = slices.DeleteFunc(o.watched[k], func(other *view) bool { return other == v })
	if len(o.watched[k]) == 0 {
		delete(o.watched, k)
	}
	o.releaseKindLocked(k.resource)
}

// sawLocked takes over an object that the owner itself has read or written.
func (own *owner) sawLocked(live map[string]any, now time.Time) {
	object := unstructured.Unstructured{Object: live}
	for k, v := range own.views {
		if k.name != object.GetName() || k.namespace != object.GetNamespace() || v.target.GroupVersionKind() != object.GroupVersionKind() {
			continue
		}
		if own.waited[k] && !v.last.Exists() && v.last.ResourceVersion == "" {
			continue // lost while the owner acted, perhaps after it saw the object
		}
		observation := v.target.observe(live, now)
		if v.last.Stale && v.last.ResourceVersion == observation.ResourceVersion || observation.supersedes(v.last) {
			v.last = observation
		}
	}
}

func keyOf(target Target) key {
	return key{resource: target.Resource, namespace: target.Namespace, name: target.Name}
}

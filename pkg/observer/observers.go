package observer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// ErrNotSynced is the error of an [Observation] while the objects of its kind
// are not all known yet. The owner is notified when they are.
var ErrNotSynced = errors.New("not synced yet")

// ErrNamespace is the error of an [Observation] of a target that is in none of
// Options.Namespaces: nobody asks the API server for it.
var ErrNamespace = errors.New("the namespace is not one of those that are watched")

// Options say what to observe and whom to tell.
type Options struct {
	Client dynamic.Interface
	// Streams opens the watches, of whose objects only that is decoded which somebody
	// looks at; nil: they are those of Client.
	Streams Streams
	// Metadata is for [Observers.Resync].
	Metadata metadata.Interface
	// Selector is the label selector of all objects that any owner has.
	Selector string
	// Namespaces are those whose objects are watched, each by informers of its own,
	// so that rights in them suffice; none: all, by one informer for each kind.
	// Objects of the cluster are watched either way.
	Namespaces []string
	// Notify is called when an owner has to act. It must not block, nor call back.
	Notify func(Owner)
	// Summarise gives what is to be known of a live object beyond its fields;
	// values are compared with ==. nil: nothing. It is kept for every object, so
	// it must be small and share nothing with the object but whole strings. It cannot
	// read managedFields.
	Summarise func(live map[string]any) any
	// Summarised are the fields that Summarise and OwnerOf read of an object, beside
	// metadata, apiVersion and kind; nil: all. Others need not be decoded.
	Summarised []string
	// OwnerOf tells to whom an object says it belongs. nil: nobody.
	OwnerOf func(live map[string]any) (Owner, bool)
	// Resync is how often, give or take a tenth, [Observers.Resync] compares each
	// kind with a list; 0: only when asked.
	Resync time.Duration
	Now    func() time.Time
	Logger logr.Logger
}

// Observers are the informers of one cluster. Its methods are safe for
// concurrent use; those for one owner must be called one after the other.
type Observers struct {
	Options

	// ctx ends all informers.
	ctx context.Context

	missingPause, askedPause, gatherPause, longestGather, resyncGrace, resyncSpread time.Duration
	// hurry asks Resync to compare all kinds at once.
	hurry chan struct{}
	// lists has a place for each list that may be under way.
	lists chan struct{}

	mu     sync.RWMutex
	kinds  map[scope]*kind
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
	// stray: an object that is nobody's target appeared meanwhile.
	stray bool
}

// view is how one owner sees one object.
type view struct {
	owner  Owner
	target Target
	last   Observation
	// told is the summary that the owner knows of.
	told any
}

// New makes Observers whose informers end with the context.
func New(ctx context.Context, options Options) *Observers {
	return &Observers{
		Options:      options,
		ctx:          ctx,
		missingPause: missingPause,
		askedPause:   askedPause,
		gatherPause:  gatherPause, longestGather: longestGather,
		resyncGrace:  resyncGrace,
		resyncSpread: resyncSpread,
		hurry:        make(chan struct{}, 1),
		lists:        make(chan struct{}, resyncLists),
		kinds:        map[scope]*kind{},
		owners:       map[Owner]*owner{},
		watched:      map[key][]*view{},
	}
}

// Observe says what the owner wants observed from now on, starts the informers
// that are missing, and gives what is known of each target. Until Start, the
// owner's events wait. Of a kind whose objects are not known, each target has an
// error: ErrNotSynced, or what the API server says to the list or watch. The
// owner is notified when that changes. A kind that is not served is asked for
// again from time to time, and sooner if an owner observes it again.
func (o *Observers) Observe(name Owner, targets []Target) []Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	own := o.owners[name]
	if own == nil {
		own = &owner{waited: map[key]bool{}}
		o.owners[name] = own
	}
	own.waiting = true
	o.setTargetsLocked(name, own, targets)

	current := make([]Observation, 0, len(targets))
	for _, target := range targets {
		v := own.views[keyOf(target)]
		v.told = v.last.Summary
		known := v.last
		if k := o.kinds[o.scopeOf(keyOf(target))]; k.err != nil {
			known.Err = fmt.Errorf("watch %s: %w", target.ID, k.err)
			o.askLocked(k)
		}
		current = append(current, known)
	}
	return current
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
		o.readLocked(own, &unstructured.Unstructured{Object: live})
	}
	notify := own.stray
	for k := range own.waited {
		if v := own.views[k]; v != nil && v.tellLocked() {
			notify = true
		}
	}
	own.waiting, own.waited, own.stray = false, map[key]bool{}, false
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
			v.last.Live, v.last.Err = nil, nil
		default:
			v.target = target // it is the same, and the owner has this one
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
	at := keyOf(target)
	k := o.kindLocked(target)
	k.users++
	v := &view{owner: name, target: target}
	// The object may be known from a time when nobody wanted it.
	if found := k.current.record(at); found != nil {
		v.last = found.stale()
		v.last.Seen = o.Now()
		v.told = v.last.Summary
	}
	o.watched[at] = append(o.watched[at], v)
	return v
}

func (o *Observers) forgetLocked(at key, v *view) {
	o.watched[at] = slices.DeleteFunc(o.watched[at], func(other *view) bool { return other == v })
	if len(o.watched[at]) == 0 {
		delete(o.watched, at)
	}
	o.releaseLocked(o.scopeOf(at))
}

// readLocked takes over an object that the owner itself has read or written.
func (o *Observers) readLocked(own *owner, live *unstructured.Unstructured) {
	for at, v := range own.views {
		if at.name != live.GetName() || at.namespace != live.GetNamespace() || v.target.GroupVersionKind() != live.GroupVersionKind() {
			continue
		}
		if own.waited[at] && !v.last.Exists() && v.last.ResourceVersion == "" {
			continue // lost while the owner acted, perhaps after it saw the object
		}
		observation := o.observe(v.target, live, func() Whole { return wholeOf(live.Object) }, o.Now())
		summary, err := o.summarise(live)
		observation.Summary, observation.Err = summary, first(observation.Err, err)
		taken := v.last.Stale && v.last.ResourceVersion == observation.ResourceVersion || observation.supersedes(v.last)
		if taken {
			v.last = observation
		}
		if taken || own.waited[at] {
			v.told = summary // an event after it may tell another one
		}
	}
}

func keyOf(target Target) key {
	return key{resource: target.Resource, namespace: target.Namespace, name: target.Name}
}

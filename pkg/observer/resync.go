package observer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/pager"

	"github.com/krake-observer/krake-observer/internal/resync"
)

const (
	// resyncPage is the number of objects in a page of a list.
	resyncPage = 500
	// resyncTimeout bounds the time for the lists of one kind.
	resyncTimeout = time.Minute
	// resyncGrace is the time that an event may take to arrive.
	resyncGrace = 3 * time.Second
	// resyncSpread is the time over which the comparisons of [Observers.ResyncNow] begin.
	resyncSpread = 2 * time.Second
	// resyncLists bounds the number of concurrent lists then.
	resyncLists = 8
)

// resyncer compares the observed kinds with lists, and replaces informers that have missed events.
type resyncer struct {
	options   *Options
	registry  *registry
	informers *informers

	grace, spread time.Duration
	// hurry requests a comparison of all kinds at once.
	hurry chan struct{}
	// lists has a place for each concurrent list.
	lists chan struct{}
}

func newResyncer(options *Options, i *informers) *resyncer {
	return &resyncer{
		options: options, registry: i.registry, informers: i, grace: resyncGrace, spread: resyncSpread,
		hurry: make(chan struct{}, 1), lists: make(chan struct{}, resyncLists),
	}
}

// run implements [Observers.Resync].
func (r *resyncer) run(ctx context.Context) error {
	for {
		k, pause := r.nextTurn()
		var due <-chan time.Time // never, without an interval
		if r.options.Resync > 0 {
			due = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.hurry:
			r.compareAll(ctx)
			continue
		case <-due:
		}
		if k != nil {
			r.compareOne(ctx, k)
		}
	}
}

// compareAll compares all kinds concurrently. A kind that is compared twice, or gets no answer,
// does not delay the others.
func (r *resyncer) compareAll(ctx context.Context) {
	var all sync.WaitGroup
	for _, k := range r.observed() {
		all.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(wait.Jitter(r.spread/100, 99)):
				r.rouse(k)
				r.compareOne(ctx, k)
			}
		})
	}
	all.Wait()
}

func (r *resyncer) observed() []*kind {
	r.registry.mu.RLock()
	defer r.registry.mu.RUnlock()
	return slices.Collect(maps.Values(r.informers.kinds))
}

// nextTurn returns the kind of the next comparison and the time until then. If there is no kind, it
// returns the time to wait for one.
func (r *resyncer) nextTurn() (next *kind, pause time.Duration) {
	r.registry.mu.Lock()
	defer r.registry.mu.Unlock()
	for _, k := range r.informers.kinds {
		if next == nil || k.due.Before(next.due) {
			next = k
		}
	}
	// A new kind may have an earlier turn than all others.
	nap := r.options.Resync / 10
	if next == nil {
		return nil, nap
	}
	pause = next.due.Sub(r.options.Now())
	if pause > nap {
		return nil, nap
	}
	pause = max(0, pause)
	next.due = r.options.Now().Add(pause + wait.Jitter(r.options.Resync*9/10, 2.0/9)) // a tenth more or less
	return next, pause
}

// compareOne compares one kind, and logs an error.
func (r *resyncer) compareOne(ctx context.Context, k *kind) {
	if err := r.compare(ctx, k); err != nil && ctx.Err() == nil {
		r.options.Logger.Error(err, "A list could not be compared with what is known")
	}
}

func (r *resyncer) compare(ctx context.Context, k *kind) error {
	ctx, cancel := context.WithTimeout(ctx, resyncTimeout)
	defer cancel()
	r.renew(k)
	known, served := r.known(k)
	if !served {
		return nil
	}
	listed, err := r.list(ctx, k.scope)
	if err != nil {
		return err
	}
	differences := resync.Compare(listed, known)
	if len(differences) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(r.grace):
	}
	if listed, err = r.list(ctx, k.scope); err != nil {
		return err
	}
	r.replace(k, differences, listed)
	return nil
}

func (r *resyncer) known(k *kind) (known resync.Versions, served bool) {
	r.registry.mu.RLock()
	defer r.registry.mu.RUnlock()
	return r.knownLocked(k), k.current != nil && k.next == nil
}

// knownLocked returns the objects of the informer, and those that an owner has written. The
// informer may not know the latter.
func (r *resyncer) knownLocked(k *kind) resync.Versions {
	known := resync.Versions{}
	for _, found := range k.current.records() {
		known[types.NamespacedName{Namespace: found.namespace, Name: found.name}] = resync.Version{UID: found.uid, ResourceVersion: found.version}
	}
	for at, views := range r.registry.watched[k.scope] {
		name := types.NamespacedName{Namespace: at.namespace, Name: at.name}
		if _, ok := known[name]; ok {
			continue
		}
		for _, one := range views {
			if one.last.Exists() {
				known[name] = resync.Version{UID: one.last.UID, ResourceVersion: one.last.ResourceVersion}
			}
		}
	}
	return known
}

// replace replaces the informer if any of the differences remains.
func (r *resyncer) replace(k *kind, differences resync.Differences, listed resync.Versions) {
	r.registry.mu.Lock()
	defer r.registry.mu.Unlock()
	if k.current == nil || k.next != nil {
		return // stopped, or replaced already
	}
	if missed := differences.Standing(listed, r.knownLocked(k)); len(missed) > 0 {
		r.options.Logger.Info("An informer has missed events", "of", k.String(), "objects", len(missed))
		r.informers.startLocked(k)
	}
}

// renew replaces an informer whose first list does not end.
func (r *resyncer) renew(k *kind) {
	r.registry.mu.Lock()
	defer r.registry.mu.Unlock()
	if k.next == nil || r.options.Resync <= 0 || r.options.Now().Sub(k.next.started) < r.options.Resync/2 {
		return
	}
	r.options.Logger.Info("An informer has not listed its objects", "of", k.String())
	k.next.stop()
	r.informers.startLocked(k)
}

// rouse replaces an informer whose first list was refused, and that waits before it tries again.
func (r *resyncer) rouse(k *kind) {
	r.registry.mu.Lock()
	defer r.registry.mu.Unlock()
	if k.next != nil && k.next.failed {
		k.next.stop()
		r.informers.startLocked(k)
	}
}

// list lists the metadata of all objects of a scope.
func (r *resyncer) list(ctx context.Context, of scope) (resync.Versions, error) {
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("list metadata of %s: %w", of, ctx.Err())
	case r.lists <- struct{}{}:
		defer func() { <-r.lists }()
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.options.Metadata.Resource(of.resource).Namespace(of.namespace).List(ctx, options)
	})
	pages.PageSize = resyncPage
	listed := resync.Versions{}
	if err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: r.options.Selector}, listed.Add); err != nil {
		return nil, fmt.Errorf("list metadata of %s: %w", of, err)
	}
	return listed, nil
}

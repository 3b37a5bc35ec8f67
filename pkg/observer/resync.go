package observer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

const (
	// resyncPage is how many objects a page of a list has.
	resyncPage = 500
	// resyncTimeout is how long the lists of one kind may take.
	resyncTimeout = time.Minute
	// resyncGrace is how long an event may be on its way.
	resyncGrace = 3 * time.Second
	// resyncSpread is over what time the kinds are compared that are compared at once.
	resyncSpread = 2 * time.Second
	// resyncLists is how many lists may be under way then.
	resyncLists = 8
)

// identity is by which an object in a list is compared with the known one.
type identity struct {
	uid     types.UID
	version string
}

// identities are those of the objects of a kind, by the informer's keys.
type identities map[string]identity

// Resync compares lists of the observed kinds with what is known, each kind once
// in the interval, until the context ends. A watch that has lost an event, or has
// fallen silent, is found by it: its informer is replaced. Without an interval
// they are compared only when [Observers.ResyncNow] asks for it.
func (o *Observers) Resync(ctx context.Context) error {
	for {
		k, pause := o.nextResync()
		var due <-chan time.Time // never, without an interval
		if o.Options.Resync > 0 {
			due = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-o.hurry:
			o.resyncAll(ctx)
			continue
		case <-due:
		}
		if k != nil {
			o.resync(ctx, k)
		}
	}
}

// ResyncNow has every kind compared within a few seconds, by [Observers.Resync],
// as is good when the API server was away: an informer waits for up to half a
// minute before it tries again. It does not block; calls that come before the
// comparison starts are one.
func (o *Observers) ResyncNow() {
	select {
	case o.hurry <- struct{}{}:
	default: // asked for already
	}
}

// resyncAll compares all kinds, side by side: those that have to look twice, or
// that are not answered, hold up nobody.
func (o *Observers) resyncAll(ctx context.Context) {
	var all sync.WaitGroup
	for _, k := range o.observed() {
		all.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(wait.Jitter(o.resyncSpread/100, 99)):
				o.rouse(k)
				o.resync(ctx, k)
			}
		})
	}
	all.Wait()
}

func (o *Observers) observed() []*kind {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return slices.Collect(maps.Values(o.kinds))
}

// nextResync gives the kind whose turn comes next and the time till then, or no
// kind and a time to wait for one.
func (o *Observers) nextResync() (next *kind, pause time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.kinds {
		if next == nil || k.due.Before(next.due) {
			next = k
		}
	}
	// A kind that comes meanwhile may have an earlier turn than all others.
	nap := o.Options.Resync / 10
	if next == nil {
		return nil, nap
	}
	pause = next.due.Sub(o.Now())
	if pause > nap {
		return nil, nap
	}
	pause = max(0, pause)
	next.due = o.Now().Add(pause + jittered(o.Options.Resync))
	return next, pause
}

// firstResync is the first turn of a kind, anywhere in the interval.
func (o *Observers) firstResync() time.Time {
	return o.Now().Add(wait.Jitter(o.Options.Resync/100, 99))
}

// jittered gives the interval, give or take a tenth.
func jittered(interval time.Duration) time.Duration {
	return wait.Jitter(interval*9/10, 2.0/9)
}

// resync compares one kind, or says why it cannot.
func (o *Observers) resync(ctx context.Context, k *kind) {
	if err := o.compare(ctx, k); err != nil && ctx.Err() == nil {
		o.Logger.Error(err, "A list could not be compared with what is known")
	}
}

// compare compares one kind. A difference may be an event that is on its way, so
// that it is looked at twice.
func (o *Observers) compare(ctx context.Context, k *kind) error {
	ctx, cancel := context.WithTimeout(ctx, resyncTimeout)
	defer cancel()
	o.renew(k)
	suspects, err := o.suspects(ctx, k)
	if err != nil || len(suspects) == 0 {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(o.resyncGrace):
	}
	listed, err := o.list(ctx, k.scope)
	if err != nil {
		return err
	}
	o.replace(k, suspects, listed)
	return nil
}

// replace replaces the informer if any of the suspects stands.
func (o *Observers) replace(k *kind, suspects map[string]suspect, listed identities) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k.current == nil || k.next != nil {
		return // stopped, or replaced already
	}
	known := o.identitiesLocked(k)
	missed := 0
	for name, s := range suspects {
		if s.stands(listed[name], known[name]) {
			missed++
		}
	}
	if missed > 0 {
		o.Logger.Info("An informer has missed events", "of", k.String(), "objects", missed)
		o.startLocked(k)
	}
}

// renew replaces an informer that does not get to an end of its first list.
func (o *Observers) renew(k *kind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k.next == nil || o.Options.Resync <= 0 || o.Now().Sub(k.next.started) < o.Options.Resync/2 {
		return
	}
	o.Logger.Info("An informer has not listed its objects", "of", k.String())
	k.next.stop()
	o.startLocked(k)
}

// rouse replaces an informer that was refused its first list, and waits to ask again.
func (o *Observers) rouse(k *kind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k.next != nil && k.next.failed {
		k.next.stop()
		o.startLocked(k)
	}
}

// suspect is an object that is not known as it was listed; the zero identity: it
// is not there.
type suspect struct {
	listed, known identity
}

// suspects gives the objects that are not known as they are listed.
func (o *Observers) suspects(ctx context.Context, k *kind) (map[string]suspect, error) {
	// In this order, all that was known is listed, unless it was deleted since.
	known, served := o.known(k)
	if !served {
		return nil, nil
	}
	listed, err := o.list(ctx, k.scope)
	if err != nil {
		return nil, err
	}
	found := map[string]suspect{}
	for name, now := range listed {
		if known[name] != now {
			found[name] = suspect{listed: now, known: known[name]}
		}
	}
	for name, former := range known {
		if _, ok := listed[name]; !ok {
			found[name] = suspect{known: former}
		}
	}
	return found, nil
}

// stands tells if the informer still has not heard of what the first list told,
// by a second list and what is known after it.
func (s suspect) stands(listed, known identity) bool {
	switch {
	case s.listed == identity{}: // known, but deleted
		return listed == identity{} && known.uid == s.known.uid
	case known == identity{}: // not known, unless it was deleted since
		return listed.uid == s.listed.uid
	}
	return newer(s.listed.version, known.version)
}

func (o *Observers) known(k *kind) (known identities, served bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.identitiesLocked(k), k.current != nil && k.next == nil
}

// identitiesLocked gives the objects that are known: those of the informer, and
// those that an owner has written, of which the informer may never have heard.
func (o *Observers) identitiesLocked(k *kind) identities {
	known := k.current.identities()
	for at, views := range o.watched {
		name := cache.NewObjectName(at.namespace, at.name).String()
		if _, ok := known[name]; ok || o.scopeOf(at) != k.scope {
			continue
		}
		for _, v := range views {
			if v.last.Exists() {
				known[name] = identity{v.last.UID, v.last.ResourceVersion}
			}
		}
	}
	return known
}

func (i *informer) identities() identities {
	known := identities{}
	for _, found := range i.records() {
		known[cache.NewObjectName(found.namespace, found.name).String()] = identity{found.uid, found.version}
	}
	return known
}

// list asks for the metadata of all objects of a scope.
func (o *Observers) list(ctx context.Context, s scope) (identities, error) {
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("list metadata of %s: %w", s, ctx.Err())
	case o.lists <- struct{}{}:
		defer func() { <-o.lists }()
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return o.Metadata.Resource(s.resource).Namespace(s.namespace).List(ctx, options)
	})
	pages.PageSize = resyncPage
	listed := identities{}
	err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: o.Selector}, func(object runtime.Object) error {
		item, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		listed[cache.MetaObjectToName(item).String()] = identity{item.GetUID(), item.GetResourceVersion()}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list metadata of %s: %w", s, err)
	}
	return listed, nil
}

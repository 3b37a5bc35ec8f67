package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// resyncPage is how many Applications a page of a list has.
	resyncPage = 500
	// resyncJitter is by how much of it an interval may be longer.
	resyncJitter = 0.2
	// confirmPause is how long to wait at least when the first comparison failed.
	confirmPause = time.Second
	// resyncGrace is how long an event may be on its way.
	resyncGrace = 3 * time.Second
)

// hubResync compares a list of the Applications with what is known, as the
// observers do with the objects: a watch that has lost an event, or has fallen
// silent, would never tell of a change.
type hubResync struct {
	selector labels.Selector
	// namespaces are those with Applications; metav1.NamespaceAll stands for all.
	namespaces []string
	interval   time.Duration
	grace      time.Duration
	// hurry asks for a comparison at once.
	hurry chan struct{}
	// confirmed is closed when what is known was compared for the first time.
	confirmed chan struct{}
	// lists gives versions, cached what the watch has told, live what there is.
	lists        metadata.Interface
	cached, live client.Reader
	store        *Store
	notify       func(types.NamespacedName)
	logger       logr.Logger
}

// run implements manager.RunnableFunc.
func (h *hubResync) run(ctx context.Context) error {
	if !h.confirm(ctx) {
		return nil
	}
	for h.wait(ctx) {
		if err := h.check(ctx, h.grace); err != nil && ctx.Err() == nil {
			h.logger.Error(err, "The Applications could not be compared with what is known")
		}
	}
	return nil
}

// confirm makes sure that what is known is no older than what there is, and tells
// if the context has not ended: another replica, which acted before this one, has
// gone by its own writes and by what other clusters wrote.
func (h *hubResync) confirm(ctx context.Context) bool {
	for {
		err := h.check(ctx, 0)
		if err == nil {
			close(h.confirmed)
			return true
		}
		if ctx.Err() == nil {
			h.logger.Error(err, "Nothing is done before the Applications were compared with what is known")
		}
		if !pause(ctx, wait.Jitter(confirmPause, 1)) {
			return false
		}
	}
}

// wait waits until it is time, and tells if the context has not ended.
func (h *hubResync) wait(ctx context.Context) bool {
	var due <-chan time.Time // never, without an interval
	if h.interval > 0 {
		timer := time.NewTimer(wait.Jitter(h.interval, resyncJitter))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-h.hurry:
	}
	return true
}

// now has the Applications compared at once.
func (h *hubResync) now() {
	select {
	case h.hurry <- struct{}{}:
	default: // somebody has asked already
	}
}

// check takes over what the watch has missed. A namespace that cannot be listed
// does not hold up the others.
func (h *hubResync) check(ctx context.Context, grace time.Duration) error {
	var failures []error
	for _, namespace := range h.namespaces {
		failures = append(failures, h.checkIn(ctx, namespace, grace))
	}
	return errors.Join(failures...)
}

// checkIn: a difference counts if it outlives the time that an event may be on
// its way.
func (h *hubResync) checkIn(ctx context.Context, namespace string, grace time.Duration) error {
	missed, err := h.missed(ctx, namespace)
	if len(missed) == 0 || err != nil {
		return err
	}
	if grace > 0 {
		if !pause(ctx, grace) {
			return nil
		}
		still, err := h.missed(ctx, namespace)
		if err != nil {
			return err
		}
		maps.DeleteFunc(missed, func(name types.NamespacedName, _ types.UID) bool { _, ok := still[name]; return !ok })
	}
	for name, known := range missed {
		if err := h.takeOver(ctx, name, known); err != nil {
			return err
		}
	}
	return nil
}

// missed gives the Applications of which what is known is older than what there
// is, or of which there is nothing any more, with the UID by which they are known.
func (h *hubResync) missed(ctx context.Context, namespace string) (map[types.NamespacedName]types.UID, error) {
	known, err := h.known(ctx, namespace)
	if err != nil {
		return nil, err
	}
	missed, listed := map[types.NamespacedName]types.UID{}, map[types.NamespacedName]bool{}
	versions := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return h.lists.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).List(ctx, options)
	}))
	versions.PageSize = resyncPage
	err = versions.EachListItem(ctx, metav1.ListOptions{LabelSelector: h.selector.String()}, func(item runtime.Object) error {
		found, ok := item.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("a list of metadata has a %T", item)
		}
		name := types.NamespacedName{Namespace: found.Namespace, Name: found.Name}
		listed[name] = true
		if cached := known[name]; cached.UID != found.UID || isOlder(cached.ResourceVersion, found.ResourceVersion) {
			missed[name] = cached.UID
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the versions of the Applications: %w", err)
	}
	for name, cached := range known {
		if !listed[name] {
			missed[name] = cached.UID
		}
	}
	h.store.keepSeen(namespace, listed)
	return missed, nil
}

// known gives what the watch has told of the Applications.
func (h *hubResync) known(ctx context.Context, namespace string) (map[types.NamespacedName]metav1.ObjectMeta, error) {
	var cached corev1.ConfigMapList
	if err := h.cached.List(ctx, &cached, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Applications that are known: %w", err)
	}
	known := make(map[types.NamespacedName]metav1.ObjectMeta, len(cached.Items))
	for i := range cached.Items {
		meta := cached.Items[i].ObjectMeta
		known[types.NamespacedName{Namespace: meta.Namespace, Name: meta.Name}] = meta
	}
	return known, nil
}

func isOlder(known, listed string) bool {
	order, err := resourceversion.CompareResourceVersion(known, listed)
	return err != nil || order < 0
}

// takeOver reads an Application past the cache. That it is gone ends its
// observation, and deletes nothing: what it held was deleted before, or was given up.
func (h *hubResync) takeOver(ctx context.Context, name types.NamespacedName, known types.UID) error {
	var found corev1.ConfigMapList
	err := h.live.List(ctx, &found, client.InNamespace(name.Namespace),
		client.MatchingFields{"metadata.name": name.Name}, client.MatchingLabelsSelector{Selector: h.selector})
	if err != nil {
		return fmt.Errorf("read Application %s: %w", name, err)
	}
	h.logger.Info("The watch has not told of a change of an Application", "application", name.String())
	if len(found.Items) == 0 {
		h.store.lost(name, known)
	} else {
		h.store.saw(&found.Items[0])
	}
	h.notify(name)
	return nil
}

// pause waits, and tells if the time has passed and the context has not ended.
func pause(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/resync"
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

// checkIn takes over what the watch has missed in a namespace. A difference counts if it outlives the
// time that an event may be on its way.
func (h *hubResync) checkIn(ctx context.Context, namespace string, grace time.Duration) error {
	listed, known, err := h.versions(ctx, namespace)
	if err != nil {
		return err
	}
	missed := resync.Compare(listed, known)
	if len(missed) == 0 {
		return nil
	}
	if grace > 0 {
		if !pause(ctx, grace) {
			return nil
		}
		if listed, known, err = h.versions(ctx, namespace); err != nil {
			return err
		}
	}
	for name, difference := range missed.Standing(listed, known) {
		if err := h.takeOver(ctx, name, difference.Known.UID); err != nil {
			return err
		}
	}
	return nil
}

// versions returns the Applications that are listed, and those that the watch had reported before.
func (h *hubResync) versions(ctx context.Context, namespace string) (listed, known resync.Versions, err error) {
	var cached corev1.ConfigMapList
	if err := h.cached.List(ctx, &cached, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the Applications that are known: %w", err)
	}
	listed, known = resync.Versions{}, resync.Versions{}
	for i := range cached.Items {
		if err := known.Add(&cached.Items[i]); err != nil {
			return nil, nil, err
		}
	}
	pages := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return h.lists.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).List(ctx, options)
	}))
	pages.PageSize = resyncPage
	if err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: h.selector.String()}, listed.Add); err != nil {
		return nil, nil, fmt.Errorf("list the versions of the Applications: %w", err)
	}
	h.store.keepSeen(namespace, listed)
	return listed, known, nil
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

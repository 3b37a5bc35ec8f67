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

	"github.com/krake-observer/krake-observer/internal/resync"
)

const (
	// resyncPage is how many Applications a page of a list has.
	resyncPage = 500
	// resyncJitter is the fraction by which an interval may be longer.
	resyncJitter = 0.2
	// confirmPause is how long to wait at least when the first comparison failed.
	confirmPause = time.Second
	// resyncGrace is how long an event may be on its way.
	resyncGrace = 3 * time.Second
)

// ResyncOptions name what a [Resync] compares.
type ResyncOptions struct {
	Cluster string
	// Namespaces are those with Applications; none: all.
	Namespaces []string
	Interval   time.Duration
	// Lists has versions, Cached what the watch reported, Live the present state.
	Lists        metadata.Interface
	Cached, Live client.Reader
	Store        *Store
	// Notify is called with the Applications to reconcile.
	Notify func(types.NamespacedName)
	Logger logr.Logger
}

// Resync compares the Applications that are known with those on the hub, as the observers do
// with the objects. A watch that has lost an event, or has fallen silent, would never report a
// change.
type Resync struct {
	options  ResyncOptions
	selector labels.Selector
	grace    time.Duration
	// hurry requests a comparison at once.
	hurry     chan struct{}
	confirmed chan struct{}
}

// NewResync makes a Resync that does nothing before it is run.
func NewResync(options ResyncOptions) (*Resync, error) {
	selector, err := SelectorOf(options.Cluster)
	if len(options.Namespaces) == 0 {
		options.Namespaces = []string{metav1.NamespaceAll}
	}
	return &Resync{options, selector, resyncGrace, make(chan struct{}, 1), make(chan struct{})}, err
}

// Run compares at once, and then in each interval, until the context ends. It returns only
// [resync.ErrRestored].
func (h *Resync) Run(ctx context.Context) error {
	if err := h.confirm(ctx); err != nil {
		return err
	}
	for h.wait(ctx) {
		err := h.check(ctx, h.grace)
		switch {
		case errors.Is(err, resync.ErrRestored):
			return err
		case err != nil && ctx.Err() == nil:
			h.options.Logger.Error(err, "The Applications could not be compared with what is known")
		}
	}
	return nil
}

// Confirmed is closed when the Applications were compared for the first time.
func (h *Resync) Confirmed() <-chan struct{} { return h.confirmed }

// confirm compares until that has succeeded once, or the context ends.
// The replica that acted before this one relied on its own writes and on those of other
// clusters.
func (h *Resync) confirm(ctx context.Context) error {
	for {
		err := h.check(ctx, 0)
		switch {
		case err == nil:
			close(h.confirmed)
			return nil
		case errors.Is(err, resync.ErrRestored):
			return err
		case ctx.Err() == nil:
			h.options.Logger.Error(err, "Nothing is done before the Applications were compared with what is known")
		}
		if !pause(ctx, wait.Jitter(confirmPause, 1)) {
			return nil
		}
	}
}

// wait waits for the next comparison, and returns false if the context ends first.
func (h *Resync) wait(ctx context.Context) bool {
	var due <-chan time.Time // never, without an interval
	if h.options.Interval > 0 {
		due = time.After(wait.Jitter(h.options.Interval, resyncJitter))
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-h.hurry:
	}
	return true
}

// Now requests a comparison at once.
func (h *Resync) Now() {
	select {
	case h.hurry <- struct{}{}:
	default: // a comparison is requested already
	}
}

// check takes over what the watch has missed. A namespace that cannot be listed does not delay
// the others.
func (h *Resync) check(ctx context.Context, grace time.Duration) error {
	var failures []error
	for _, namespace := range h.options.Namespaces {
		failures = append(failures, h.checkIn(ctx, namespace, grace))
	}
	return errors.Join(failures...)
}

// checkIn takes over what the watch has missed in a namespace. A difference counts if it outlives the
// time that an event may be on its way.
func (h *Resync) checkIn(ctx context.Context, namespace string, grace time.Duration) error {
	listed, known, err := h.versions(ctx, namespace)
	if err != nil {
		return err
	}
	missed := resync.Compare(listed, known)
	if err := missed.CheckHistory(); err != nil || len(missed) == 0 {
		return err
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
func (h *Resync) versions(ctx context.Context, namespace string) (listed, known resync.Versions, err error) {
	var cached corev1.ConfigMapList
	if err := h.options.Cached.List(ctx, &cached, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the Applications that are known: %w", err)
	}
	listed, known = resync.Versions{}, resync.Versions{}
	for i := range cached.Items {
		if err := known.Add(&cached.Items[i]); err != nil {
			return nil, nil, err
		}
	}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return h.options.Lists.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).List(ctx, options)
	})
	pages.PageSize = resyncPage
	if err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: h.selector.String()}, listed.Add); err != nil {
		return nil, nil, fmt.Errorf("list the versions of the Applications: %w", err)
	}
	h.options.Store.keepSeen(namespace, listed)
	return listed, known, nil
}

// takeOver reads an Application past the cache. If it is gone, its observation ends, and nothing is
// deleted: what it held was deleted before, or was given up.
func (h *Resync) takeOver(ctx context.Context, name types.NamespacedName, known types.UID) error {
	found, err := h.options.Store.readLive(ctx, h.options.Live, name)
	if err != nil {
		return err
	}
	h.options.Logger.Info("The watch has missed a change of an Application", "application", name.String())
	if found == nil {
		h.options.Store.lost(name, known)
	} else {
		h.options.Store.saw(found)
	}
	h.options.Notify(name)
	return nil
}

// pause waits, and returns false if the context ends first.
func pause(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}

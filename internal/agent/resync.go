package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// resyncGrace is how long an event may be on its way.
	resyncGrace = 3 * time.Second
)

// hubResync compares a list of the Applications with what is known, as the
// observers do with the objects: a watch that has lost an event, or has fallen
// silent, would never tell of a change.
type hubResync struct {
	selector string
	interval time.Duration
	grace    time.Duration
	// lists gives versions, cached what the watch has told, live what there is.
	lists        metadata.Interface
	cached, live client.Reader
	store        *store
	notify       func(types.NamespacedName)
	logger       logr.Logger
}

// run implements manager.RunnableFunc.
func (h *hubResync) run(ctx context.Context) error {
	if h.interval <= 0 {
		<-ctx.Done()
		return nil
	}
	for {
		if !pause(ctx, wait.Jitter(h.interval, resyncJitter)) {
			return nil
		}
		if err := h.check(ctx); err != nil && ctx.Err() == nil {
			h.logger.Error(err, "The Applications could not be compared with what is known")
		}
	}
}

// check takes over what the watch has missed. A difference counts if it outlives
// the time that an event may be on its way.
func (h *hubResync) check(ctx context.Context) error {
	missed, err := h.missed(ctx)
	if len(missed) == 0 || err != nil || !pause(ctx, h.grace) {
		return err
	}
	still, err := h.missed(ctx)
	if err != nil {
		return err
	}
	for name := range missed {
		if !still[name] {
			continue
		}
		if err := h.takeOver(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// missed gives the Applications of which what is known is older than what there is.
func (h *hubResync) missed(ctx context.Context) (map[types.NamespacedName]bool, error) {
	missed, all := map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
	versions := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return h.lists.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).List(ctx, options)
	}))
	versions.PageSize = resyncPage
	err := versions.EachListItem(ctx, metav1.ListOptions{LabelSelector: h.selector}, func(item runtime.Object) error {
		listed, ok := item.(*metav1.PartialObjectMetadata)
		if !ok {
			return fmt.Errorf("a list of metadata has a %T", item)
		}
		name := types.NamespacedName{Namespace: listed.Namespace, Name: listed.Name}
		all[name] = true
		known := &corev1.ConfigMap{}
		if err := client.IgnoreNotFound(h.cached.Get(ctx, name, known, &client.GetOptions{})); err != nil {
			return err
		}
		if known.UID != listed.UID || isOlder(known.ResourceVersion, listed.ResourceVersion) {
			missed[name] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the versions of the Applications: %w", err)
	}
	h.store.keepSeen(all)
	return missed, nil
}

func isOlder(known, listed string) bool {
	order, err := resourceversion.CompareResourceVersion(known, listed)
	return err != nil || order < 0
}

func (h *hubResync) takeOver(ctx context.Context, name types.NamespacedName) error {
	var found corev1.ConfigMapList
	err := h.live.List(ctx, &found, client.InNamespace(name.Namespace), client.MatchingFields{"metadata.name": name.Name})
	if err != nil {
		return fmt.Errorf("read Application %s: %w", name, err)
	}
	for i := range found.Items {
		h.logger.Info("The watch has missed a change of an Application", "application", name.String())
		h.store.saw(&found.Items[i])
		h.notify(name)
	}
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

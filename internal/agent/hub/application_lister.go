package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// ApplicationLister has the Applications that have, or are to have, objects on this cluster, as the cache
// has them.
type ApplicationLister struct {
	// ctx ends with the agent: a request for the metrics brings no context.
	ctx    context.Context
	cache  cache.Cache
	synced atomic.Bool
}

// byAwaited is the index of the Applications that have not begun, by the names of those that they wait for.
const byAwaited = "awaited"

// Watch makes the cache watch the Applications of a cluster. Every replica does so from its start, so that
// the next one to act needs no list.
func Watch(ctx context.Context, cached cache.Cache, cluster string) (*ApplicationLister, error) {
	if _, err := cached.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("watch the Applications: %w", err)
	}
	awaited := func(object client.Object) []string {
		cm, ok := object.(*corev1.ConfigMap)
		if !ok {
			return nil
		}
		return application.Awaited(cm, cluster)
	}
	if err := cached.IndexField(ctx, &corev1.ConfigMap{}, byAwaited, awaited); err != nil {
		return nil, fmt.Errorf("index the Applications: %w", err)
	}
	return &ApplicationLister{ctx: ctx, cache: cached}, nil
}

// AwaitSync waits until the Applications are known. It is a runnable of the manager.
func (k *ApplicationLister) AwaitSync(ctx context.Context) error {
	k.synced.Store(k.cache.WaitForCacheSync(ctx))
	return nil
}

// Names returns the names of the Applications that are known.
func (k *ApplicationLister) Names() []types.NamespacedName {
	found, _ := k.List()
	names := make([]types.NamespacedName, 0, len(found))
	for i := range found {
		names = append(names, types.NamespacedName{Namespace: found[i].Namespace, Name: found[i].Name})
	}
	return names
}

// List returns the Applications, and whether they are known yet. An unknown list differs from
// an empty one.
func (k *ApplicationLister) List() (found []corev1.ConfigMap, known bool) {
	if !k.synced.Load() {
		return nil, false
	}
	var list corev1.ConfigMapList
	if err := k.cache.List(k.ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false // the agent is about to end
	}
	return list.Items, true
}

// WaitingFor returns the Applications that wait for one, which has changed, before they begin.
func (k *ApplicationLister) WaitingFor(name types.NamespacedName) []types.NamespacedName {
	var list corev1.ConfigMapList
	if err := k.cache.List(k.ctx, &list, client.InNamespace(name.Namespace), client.MatchingFields{byAwaited: name.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the agent is about to end
	}
	waiting := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		waiting = append(waiting, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return waiting
}

// Check implements healthz.Checker.
func (k *ApplicationLister) Check(*http.Request) error {
	if !k.synced.Load() {
		return errors.New("the Applications are not known yet")
	}
	return nil
}

// SelectorOf selects the Applications of a cluster: those that it holds, or is to.
func SelectorOf(cluster string) (labels.Selector, error) {
	requirement, err := labels.NewRequirement(application.HolderLabel(cluster), selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	return labels.NewSelector().Add(*requirement), nil
}

// IntentChanged leaves out events that the agent of this cluster need not act on: writes
// of webhook and agents, and its own among them. It calls updated with the ConfigMap of
// each update.
func IntentChanged(cluster string, updated func(*corev1.ConfigMap)) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.ConfigMap)
		after, okAfter := e.ObjectNew.(*corev1.ConfigMap)
		if okAfter {
			updated(after)
		}
		if !ok || !okAfter {
			return true
		}
		return !application.SameFor(before, after, cluster)
	}}
}

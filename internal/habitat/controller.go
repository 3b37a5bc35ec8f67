package habitat

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Name is the user agent, field manager and event source of the controllers, and the
// name of their Lease.
const Name = "krake-habitat"

// shared is what all controllers have in common.
type shared struct {
	// client reads from the caches, live from the API server.
	client   client.Client
	live     client.Reader
	recorder recorder

	cluster    string
	filesImage string
	now        func() time.Time
}

// stored reads an Application, or any other ConfigMap. It returns nil if there is none.
func (s *shared) stored(ctx context.Context, name types.NamespacedName) (*corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	if err := s.client.Get(ctx, name, &cm); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &cm, nil
}

// habitats reads Habitats. They belong to the cache, and must not be changed.
func (s *shared) habitats(ctx context.Context, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := newHabitatList()
	err := s.client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...)
	return list.Items, err
}

const (
	// recheck is the interval in which each Habitat is reconciled without an event.
	recheck = 30 * time.Second
	// workers is how many requests each controller works on at once.
	workers = 4
	// firstRetry and lastRetry are the shortest and the longest pause after a failure.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 30 * time.Second
	// conflictPause is the time in which a stale cache catches up.
	conflictPause = 50 * time.Millisecond
)

func controllerOptions() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// ended returns the result of a pass. A pass that acted on stale objects is repeated,
// and is no failure.
func ended(result reconcile.Result, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	return result, err
}

// byNamespace requests one pass for the namespace of an object.
func byNamespace() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
	})
}

func named(name string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetName() == name })
}

// isNewOrDeleted ignores changes of existing objects.
var isNewOrDeleted = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

package habitat

import (
	"cmp"
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/habitat"
)

// rings writes the Application of the peer file in each namespace with Habitats. All of
// them own it, so that it exists until the last of them is deleted.
type rings struct{ *shared }

func (r *rings) add(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("habitat-rings").
		Watches(newHabitat(), byNamespace(), builder.WithPredicates(isNewOrDeleted)).
		Watches(&corev1.ConfigMap{}, byNamespace(), builder.WithPredicates(named(peersApplication), predicate.ResourceVersionChangedPredicate{})).
		WithOptions(controllerOptions()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler, for a namespace. If it has no Habitats, the
// garbage collector deletes the Application.
func (r *rings) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := request.Name
	found, err := r.habitats(ctx, client.InNamespace(namespace))
	if err != nil {
		return reconcile.Result{}, err
	}
	owners := ownersOf(found)
	if len(owners) == 0 {
		return reconcile.Result{}, nil
	}
	wanted, err := r.peersApplicationOf(namespace, owners)
	if err != nil {
		return reconcile.Result{}, err
	}
	_, _, err = r.ensure(ctx, wanted, checkPeersOwner)
	switch {
	case errors.Is(err, errTaken), isRefusal(err):
		// The status of each Habitat says that there is no peer file, and why.
		ctrl.LoggerFrom(ctx).Info("the Application of the peer file cannot be written", "namespace", namespace, "reason", err.Error())
		return reconcile.Result{RequeueAfter: recheck}, nil
	case errors.Is(err, errGoing):
		return reconcile.Result{}, nil // its deletion is an event
	}
	return ended(reconcile.Result{}, err)
}

// mostOwners is how many owners the policies permit. When the owners are deleted, the
// remaining Habitats become owners, so that the Application exists until the last one.
const mostOwners = 100

// ownersOf returns references to the Habitats that may have Pods, sorted by name.
func ownersOf(found []unstructured.Unstructured) []metav1.OwnerReference {
	var owners []metav1.OwnerReference
	for i := range found {
		if found[i].GetDeletionTimestamp() == nil && isKnown(habitat.CustomVersionOf(found[i].Object)) {
			owners = append(owners, ownerOf(found[i].GetName(), found[i].GetUID()))
		}
	}
	slices.SortFunc(owners, func(a, b metav1.OwnerReference) int { return cmp.Compare(a.Name, b.Name) })
	return owners[:min(len(owners), mostOwners)]
}

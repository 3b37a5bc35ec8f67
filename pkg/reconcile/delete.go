package reconcile

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// delete deletes what the Application holds, last created first, and lets the
// Application go when all of it is gone.
func (r *Reconciler) delete(ctx context.Context, app *application.Application) (ctrl.Result, error) {
	r.Observers.Stop(app.NamespacedName)
	if !app.Finalized {
		return ctrl.Result{}, nil
	}
	held := inOrder(app.Inventory)
	slices.Reverse(held)
	remaining, failure := r.deleteAll(ctx, app, held)
	slices.Reverse(remaining)
	app.Inventory = remaining
	app.Finalized = len(remaining) > 0
	app.Status.State = application.StateDeleting
	if err := r.Applications.Update(ctx, app); err != nil {
		return ctrl.Result{}, errors.Join(failure, err)
	}
	if failure == nil && app.Finalized {
		return ctrl.Result{RequeueAfter: deletionCheck}, nil
	}
	return ctrl.Result{}, failure
}

// deleteAll deletes objects of the Application, one after the other, and gives
// those that are not gone yet. One that fails does not hold up the others.
func (r *Reconciler) deleteAll(ctx context.Context, app *application.Application, ids []manifest.ID) (kept []manifest.ID, err error) {
	var failures []error
	for _, id := range ids {
		gone, err := r.deleteOwned(ctx, app, id)
		if !gone {
			kept = append(kept, id)
		}
		failures = append(failures, err)
	}
	return kept, errors.Join(failures...)
}

// deleteOwned deletes an object on its own proof, and tells if there is nothing
// left to do. What does not prove to be ours is not ours to delete.
func (r *Reconciler) deleteOwned(ctx context.Context, app *application.Application, id manifest.ID) (gone bool, err error) {
	object, err := r.locate(id)
	if meta.IsNoMatchError(err) {
		return true, nil // the kind is gone, and its objects with it
	}
	if err != nil {
		return false, err
	}
	ref := object.Ref
	if object.ClusterScoped {
		ref.Namespace = ""
	}
	marks := application.Marks(app.NamespacedName, app.UID, id)
	gone, err = r.Cluster.Delete(ctx, ref, func(live map[string]any) error {
		return prove(marks, id, live)
	})
	if errors.Is(err, errConflict) {
		return true, nil
	}
	if gone {
		r.Report(app, Outcome{Action: Deleted, Object: id})
	}
	return gone, err
}

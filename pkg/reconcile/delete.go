package reconcile

import (
	"context"
	"errors"
	"slices"

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
	var remaining []manifest.ID
	var failures []error
	for _, id := range slices.Backward(inOrder(app.Inventory)) {
		gone, err := r.deleteOwned(ctx, app, id)
		if !gone {
			remaining = append(remaining, id)
		}
		failures = append(failures, err)
	}
	slices.Reverse(remaining)
	app.Inventory = remaining
	app.Finalized = len(remaining) > 0
	app.Status.State = application.StateDeleting
	failure := errors.Join(failures...)
	if err := r.Applications.Update(ctx, app); err != nil {
		return ctrl.Result{}, errors.Join(failure, err)
	}
	if failure == nil && app.Finalized {
		return ctrl.Result{RequeueAfter: deletionCheck}, nil
	}
	return ctrl.Result{}, failure
}

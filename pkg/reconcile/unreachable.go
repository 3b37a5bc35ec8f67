package reconcile

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Unreachable is the pass while the target is known not to answer: it asks nothing
// of it, and says so.
func (r *Reconciler) Unreachable(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	app, err := r.Applications.Get(ctx, request.NamespacedName)
	switch {
	case errors.Is(err, application.ErrFormat):
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, scrubbed{err}
	case app == nil:
		r.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	case app.Deleted:
		r.memories.of(app).leaving = app
	}
	if !app.IsCurrent() || app.Deleted && !app.Finalized || len(r.damages(app)) > 0 {
		return ctrl.Result{}, nil
	}
	r.memories.of(app).recall(app)
	if rest := r.hub.rest(r.Now()); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	if err := r.sayUnreachable(ctx, app); err != nil {
		return ctrl.Result{}, scrubbed{err}
	}
	return ctrl.Result{}, nil
}

// silence is how long a target may not answer before that is told: an API server
// that is started again is not worth a write to each Application.
const silence = 10 * time.Second

// unreachable says that the target does not answer, and gives that as the error:
// the queue tries again.
func (r *Reconciler) unreachable(ctx context.Context, app *application.Application, known *memory, why error) error {
	if known.silentSince.IsZero() {
		known.silentSince = r.Now()
	}
	if r.Now().Sub(known.silentSince) < silence || r.hub.rests(r.Now()) {
		return why
	}
	return errors.Join(why, r.sayUnreachable(ctx, app))
}

// sayUnreachable has the conditions tell that nobody knows. What is known of single
// objects, and the spec that they were brought to, stays.
func (r *Reconciler) sayUnreachable(ctx context.Context, app *application.Application) error {
	for _, name := range []string{application.ReconciledCondition, application.DriftedCondition, application.ReadyCondition} {
		r.set(app, name, metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: reasonUnreachable,
			Message: "the API server of cluster " + r.ClusterName + " does not answer: what is said of its objects is as it was before",
		})
	}
	r.moving(app)
	switch {
	case app.Deleted:
		app.Status.State = application.StateDeleting
	case app.Status.State == "":
		app.Status.State = application.StateCreating
	}
	return r.update(ctx, app)
}

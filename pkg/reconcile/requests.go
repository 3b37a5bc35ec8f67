package reconcile

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// The requests that do not come from the queue. They come from the endpoint of the hooks, and from
// the agent when it loses the hub or the target.

var (
	// ErrNotDegraded is the error of a retry of a shutdown that the agent still waits for.
	ErrNotDegraded = errors.New("the Application is not DEGRADED by a shutdown that was not confirmed: there is nothing to try again")
	// ErrElsewhere is the error of an Application that completes on a cluster that it leaves.
	ErrElsewhere = errors.New("the Application is on its way to another cluster: try again there")
)

// Complete deletes an Application that has proven that its work is done, with its inventory. It
// does not ask the Application to shut down first.
func (r *Reconciler) Complete(ctx context.Context, app *application.Application) (application.State, error) {
	if !app.IsCurrent() {
		return app.Status.State, ErrElsewhere
	}
	if err := r.completePhase().complete(ctx, draftOf(app)); err != nil {
		return app.Status.State, err
	}
	return application.StateReady, nil
}

// ConfirmShutdown records that an Application has proven that it has shut down. It has no effect if
// the agent did not ask for the shutdown, or if the Application now stays.
func (r *Reconciler) ConfirmShutdown(ctx context.Context, app *application.Application) (application.State, error) {
	record := app.Hooks.Shutdown
	if record == nil || record.State != application.StateWaiting && record.State != application.StateDegraded || stays(app) {
		return app.Status.State, nil
	}
	confirmed := *record
	confirmed.State, confirmed.Message = application.StateReady, ""
	if err := r.shutdown(draftOf(app), nil).record(ctx, confirmed); err != nil {
		return app.Status.State, err
	}
	r.Report(app, status.Outcome{Action: status.HasShutDown, Object: itself(app)})
	return application.StateReady, nil
}

// RetryShutdown asks an Application again that did not shut down. The error is ErrNotDegraded.
func (r *Reconciler) RetryShutdown(ctx context.Context, app *application.Application) (application.State, error) {
	record := app.Hooks.Shutdown
	if record == nil || record.State != application.StateDegraded || stays(app) {
		return app.Status.State, ErrNotDegraded
	}
	s := r.shutdown(draftOf(app), nil)
	if err := s.record(ctx, s.attempt(1)); err != nil {
		return app.Status.State, err
	}
	return application.StateWaiting, nil
}

// stays reports whether an Application leaves no cluster, independently of earlier shutdown
// requests.
func stays(app *application.Application) bool { return app.IsCurrent() && !app.Deleted }

// Unreachable runs the pass while the target is known not to answer. It sends no request to the
// target, and records the outage.
func (r *Reconciler) Unreachable(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	stored, err := r.read(ctx, request.NamespacedName)
	if stored == nil || err != nil {
		return ctrl.Result{}, apierror.Scrub(err)
	}
	known := r.memories.of(stored)
	if stored.Deleted {
		known.deleted = stored
	}
	if !stored.IsCurrent() || stored.Deleted && !stored.Finalized || isDamaged(stored, r.ClusterName) {
		return ctrl.Result{}, nil
	}
	stored = known.recall(stored)
	if rest := r.outage.Reserve(r.Now()); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	return ctrl.Result{}, apierror.Scrub(r.statusWriter().recordLoss(ctx, draftOf(stored), known))
}

// Pending returns the Applications with a pending status, when the hub is back. The next pass of
// each of them stores it.
func (r *Reconciler) Pending() []types.NamespacedName {
	r.outage.Record(false, r.Now())
	var pending []types.NamespacedName
	r.memories.each(func(name types.NamespacedName, known *memory) {
		if known.pending.Load() != nil {
			pending = append(pending, name)
		}
	})
	return pending
}

// Contended is the number of objects that a competing writer changes repeatedly.
func (r *Reconciler) Contended() int {
	count := 0
	r.memories.each(func(_ types.NamespacedName, known *memory) { count += int(known.contended.Load()) })
	return count
}

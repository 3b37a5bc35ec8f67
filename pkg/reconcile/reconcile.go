package reconcile

import (
	"cmp"
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// conflictDelay is the wait until the cache has the version that caused the conflict.
const conflictDelay = 100 * time.Millisecond

// Reconcile makes the cluster match the Application. Its error does not repeat what an API server
// says about an object's values.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.Kinds.Forget(request.NamespacedName)
	result, err := r.reconcile(ctx, request.NamespacedName)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil // another client wrote first
	case err != nil:
		return ctrl.Result{}, apierror.Scrub(err)
	}
	return result, nil
}

// reconcile reads the Application and decides: leave this cluster, delete, suspend, or run the
// phases.
func (r *Reconciler) reconcile(ctx context.Context, name types.NamespacedName) (ctrl.Result, error) {
	published, err := r.read(ctx, name)
	if published == nil || err != nil {
		return ctrl.Result{}, err
	}
	if !published.IsCurrent() {
		r.Observers.Stop(name)
		if published.NotAdmitted != nil && !published.Deleted {
			return ctrl.Result{}, nil // no agent leaves for a move without a signature
		}
		return r.finalizer(published, r.memories.reset(published)).moved(ctx)
	}
	known := r.memories.of(published)
	stored := known.recall(published)
	r.reportRestraint(stored, known)
	switch damaged := damages(stored, r.ClusterName); {
	case damaged != nil:
		r.Observers.Stop(name)
		known.spec = "" // events are missed from now on
		unreadable := status.Verdict{Reason: status.Unreadable, Message: apierror.Explain(damaged)}
		return ctrl.Result{}, r.statusWriter().fail(ctx, draftOf(stored), known, unreadable)
	case stored.NotAdmitted != nil && !stored.Deleted:
		r.Observers.Stop(name)
		known.spec = "" // events are missed from now on
		refused := status.Verdict{Reason: status.NotAdmitted, Message: stored.NotAdmitted.Error()}
		return ctrl.Result{}, r.statusWriter().fail(ctx, draftOf(stored), known, refused)
	case stored.Deleted && !stored.Finalized:
		r.Observers.Stop(name)
		r.memories.forget(name)
		return ctrl.Result{}, nil
	case stored.Deleted:
		r.Observers.Stop(name)
		return r.finalizer(stored, known).remove(ctx)
	case stored.Settings.Mode == application.Suspend:
		r.Observers.Stop(name)
		known.spec = "" // events are missed from now on
		return ctrl.Result{}, r.statusWriter().suspend(ctx, stayingOf(stored), known)
	}
	p := newPass(published, stored, known, r.ClusterName)
	if needsTurn(p) && !r.mayBegin(name) {
		return ctrl.Result{}, nil
	}
	return r.ensure(ctx, p)
}

// needsTurn reports that a pass may write more than repairs: the status is not about this spec, or writes have
// failed. Those may fail again, and after a long time.
func needsTurn(p *pass) bool {
	if p.app.Settings.Mode != application.Enforce {
		return false
	}
	return p.spec != p.app.Status.ObservedSpec || slices.ContainsFunc(p.app.Status.Objects, func(object application.ObjectStatus) bool {
		return object.Reason == status.Error || object.Reason == status.Unreachable
	})
}

// reportRestraint reports that a user has begun or ended to hold the Application back since the last
// pass of this process.
func (r *Reconciler) reportRestraint(app *application.Application, known *memory) {
	restraint := app.Settings.Restraint(r.Now())
	former := known.restraint
	known.restraint = &restraint
	if former == nil || *former == restraint {
		return
	}
	outcome := status.Outcome{Action: status.Resumed, Object: itself(app), UID: app.UID}
	if restraint != "" {
		outcome.Action, outcome.Reason = status.HeldBack, restraint+", set by "+cmp.Or(app.Settings.HeldBy, "an unknown user")
	}
	r.Report(app, outcome)
}

package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// ErrNotDegraded is the error of a shutdown that is to be tried again though the
// agent has not given up.
var ErrNotDegraded = errors.New("the Application is not DEGRADED by a shutdown that was not confirmed: there is nothing to try again")

// ErrElsewhere is the error of an Application that says that it is complete where it
// is not to be any more.
var ErrElsewhere = errors.New("the Application is on its way to another cluster: try again there")

// Complete deletes an Application that has proven that its work is done, with all
// that it holds, and does not ask it to shut down first.
func (r *Reconciler) Complete(ctx context.Context, app *application.Application) (application.State, error) {
	if !app.IsCurrent() {
		return app.Status.State, ErrElsewhere
	}
	if !app.Hooks.Completed && len(app.Inventory) > 0 {
		app.Hooks.Completed = true
		if err := r.store(ctx, app); err != nil {
			return app.Status.State, err
		}
	}
	if !app.Deleted {
		if err := r.Applications.Delete(ctx, app); err != nil {
			return app.Status.State, err
		}
		r.Report(app, Outcome{Action: Completed, Object: itself(app)})
	}
	return application.StateReady, nil
}

// ConfirmShutdown takes note that an Application has proven that it has shut down. Of
// one that was not asked to, or is to stay by now, that is without effect.
func (r *Reconciler) ConfirmShutdown(ctx context.Context, app *application.Application) (application.State, error) {
	record := app.Hooks.Shutdown
	if record == nil || record.State != application.StateWaiting && record.State != application.StateDegraded || stays(app) {
		return app.Status.State, nil
	}
	confirmed := *record
	confirmed.State, confirmed.Message = application.StateReady, ""
	s := &shutdown{Reconciler: r, app: app, former: !app.IsCurrent()}
	if err := s.tell(ctx, confirmed); err != nil {
		return app.Status.State, err
	}
	r.Report(app, Outcome{Action: ShutDown, Object: itself(app)})
	return application.StateReady, nil
}

// RetryShutdown has an Application asked once more that did not shut down. The error
// is ErrNotDegraded.
func (r *Reconciler) RetryShutdown(ctx context.Context, app *application.Application) (application.State, error) {
	record := app.Hooks.Shutdown
	if record == nil || record.State != application.StateDegraded || stays(app) {
		return app.Status.State, ErrNotDegraded
	}
	s := &shutdown{Reconciler: r, app: app, former: !app.IsCurrent()}
	if err := s.tell(ctx, s.attempt(1)); err != nil {
		return app.Status.State, err
	}
	return application.StateWaiting, nil
}

// stays tells of an Application that goes from nowhere, whatever was asked of it.
func stays(app *application.Application) bool { return app.IsCurrent() && !app.Deleted }

// forgetGoing forgets what was asked of an Application that stays: once it is to go, it
// is asked anew. What it has said of its work counts for as long as it has the hook.
func forgetGoing(app *application.Application) {
	app.Hooks.Shutdown = nil
	app.Hooks.Completed = app.Hooks.Completed && app.Spec.Hooks.Complete
}

// isToShutDown tells if the cluster where an Application is to be waits for it to shut
// down here, or it was asked to already.
func isToShutDown(app *application.Application) bool {
	return app.Spec.Hooks.Shutdown && (app.IsAwaited() || app.Hooks.Shutdown != nil)
}

// waitsForFormer tells if an Application has to shut down on the clusters where it
// was, before it begins here: it may be there once only.
func waitsForFormer(app *application.Application) bool {
	return app.Spec.Hooks.Shutdown && len(app.Inventory) == 0 && len(app.Elsewhere) > 0
}

// awaitFormer says that nothing is created here yet, though it could be, and why. All else that the status
// has to tell is that of the cluster where the objects are.
func (r *Reconciler) awaitFormer(ctx context.Context, app *application.Application, from *origin) error {
	if from != nil {
		app.Learned, app.LastObserved, app.Status = from.learned, from.observed, from.status
		app.Status.Conditions = slices.Clone(app.Status.Conditions)
	}
	app.Spec.Fetched, app.Mangled, app.Status.Awaiting = "", nil, r.ClusterName // what is stored is the other agent's
	moving, state := awaiting(app)
	r.set(app, application.MigratingCondition, moving)
	r.set(app, application.ReadyCondition, metav1.Condition{Status: metav1.ConditionFalse, Reason: moving.Reason, Message: moving.Message})
	stalled := metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonProgressing}
	if state == application.StateDegraded {
		stalled = metav1.Condition{Status: metav1.ConditionTrue, Reason: moving.Reason, Message: moving.Message}
	}
	r.set(app, application.StalledCondition, stalled)
	app.Status.State = state
	return r.update(ctx, app)
}

// awaiting tells how far the shutdowns on other clusters are: of several, the one
// counts that has failed.
func awaiting(app *application.Application) (metav1.Condition, application.State) {
	moving := metav1.Condition{Status: metav1.ConditionTrue, Reason: "WaitingForShutdown"}
	state := application.StateMigrating
	var texts []string
	for _, cluster := range slices.Sorted(maps.Keys(app.Elsewhere)) {
		record := app.Elsewhere[cluster]
		text := "cluster " + cluster + ": the Application has to shut down there first"
		switch {
		case record.State == application.StateDegraded:
			state, moving.Reason = record.State, reasonNotShutDown
			text = "cluster " + cluster + ": " + notShutDown(record.Message)
		case state != application.StateDegraded && (record.State == application.StateWaiting || record.State == application.StateReady):
			state = record.State
		}
		texts = append(texts, text)
	}
	moving.Message = cut(strings.Join(texts, "; "))
	return moving, state
}

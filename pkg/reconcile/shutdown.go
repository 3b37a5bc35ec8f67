package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// A failed call is repeated within the attempt, because the Pod may be starting.
const (
	leastCallPause = time.Second
	mostCallPause  = 30 * time.Second
)

// shutdown is the shutdown of one Application that has to leave this cluster.
type shutdown struct {
	app *application.Application
	// memory is nil for a caller outside the loop.
	memory   *memory
	hub      hub
	service  service
	defaults ShutdownDefaults
	report   func(*application.Application, status.Outcome)
}

// run asks an Application that has to leave to shut down first, if it has the hook. It reports
// whether the removal of its objects has to wait.
func (s shutdown) run(ctx context.Context) (waits bool, result ctrl.Result, err error) {
	if !hasToShutDown(s.app) {
		return false, ctrl.Result{}, nil
	}
	switch gone, err := s.service.isGone(ctx); {
	case err != nil:
		return true, ctrl.Result{}, s.recordBlindness(ctx, err)
	case gone:
		return false, ctrl.Result{}, nil
	}
	if err := s.advance(ctx); err != nil {
		return true, ctrl.Result{}, err
	}
	switch s.app.Hooks.Shutdown.State {
	case application.StateWaiting:
		after, err := s.call(ctx)
		return true, ctrl.Result{RequeueAfter: after}, err
	case application.StateDegraded: // until the user acts
		return true, ctrl.Result{RequeueAfter: slowRetry}, nil
	}
	return false, ctrl.Result{}, nil
}

// hasToShutDown reports whether an Application that has to leave must shut down first.
func hasToShutDown(app *application.Application) bool {
	if !app.Spec.Hooks.Shutdown || app.Hooks.Completed {
		return false
	}
	record := app.Hooks.Shutdown
	over := record != nil && (record.State == application.StateReady || record.State == application.StateDeleting)
	return len(app.Inventory) > 0 && !over
}

// isToShutDown reports whether the Application's next cluster waits for the shutdown here, or the
// shutdown has already begun.
func isToShutDown(app *application.Application) bool {
	return app.Spec.Hooks.Shutdown && (app.IsAwaited() || app.Hooks.Shutdown != nil)
}

// advance computes the present state of the shutdown, and stores it. It records an attempt with its
// deadline before the first call.
func (s shutdown) advance(ctx context.Context) error {
	former := s.app.Hooks.Shutdown
	record := s.next()
	if err := s.record(ctx, record); err != nil {
		return err
	}
	if former != nil && former.State == application.StateWaiting && record.State != application.StateWaiting {
		s.report(s.app, status.Outcome{Action: status.NotShutDown, Object: itself(s.app), Reason: record.Message})
	}
	return nil
}

// next returns the present state of the shutdown. An attempt without a call, because the agent was
// down, does not count.
func (s shutdown) next() application.ShutdownRecord {
	record := s.app.Hooks.Shutdown
	switch {
	case record == nil,
		record.State == application.StateDegraded && record.Retry != s.app.Settings.Shutdown.Retry:
		return s.attempt(1)
	case record.State == application.StateDegraded, s.hub.now().Before(record.Deadline.Time):
		return *record
	case !record.Asked:
		return s.attempt(record.Attempt)
	case record.Attempt <= ptr.Deref(s.app.Settings.Shutdown.Retries, s.defaults.Retries):
		return s.attempt(record.Attempt + 1)
	}
	ended := *record
	ended.State, ended.Message = application.StateDegraded, s.whyEnded()
	if cmp.Or(s.app.Settings.Shutdown.Strategy, s.defaults.Strategy) == application.DeleteAnyway {
		ended.State = application.StateDeleting
	}
	return ended
}

func (s shutdown) attempt(n int) application.ShutdownRecord {
	return application.ShutdownRecord{
		State: application.StateWaiting, Attempt: n,
		Deadline: metav1.NewTime(s.hub.now().Add(s.graceTime()).Truncate(time.Second).Add(time.Second)), // the stored precision
		Retry:    s.app.Settings.Shutdown.Retry,
	}
}

func (s shutdown) whyEnded() string {
	why, message := fmt.Sprintf("it has not confirmed within %s", s.graceTime()), s.app.Hooks.Shutdown.Message
	if made := &s.memory.calls; made.isOf(s.app.Hooks.Shutdown) {
		message = made.message
	}
	if message != "" {
		why += ": " + message
	}
	return apierror.Cut(why)
}

// record stores the state of the shutdown. It sets the conditions only if this agent owns the
// status, not those of an Application that was moved away.
func (s shutdown) record(ctx context.Context, record application.ShutdownRecord) error {
	s.app.Hooks.Shutdown = &record
	if s.app.IsCurrent() {
		status.ShutDown(&s.app.Status, record, s.hub.now())
	}
	return s.hub.update(ctx, s.app, s.memory)
}

// recordBlindness records why the agent cannot find out whether there is anything to shut down.
func (s shutdown) recordBlindness(ctx context.Context, why error) error {
	if !s.app.IsCurrent() {
		return why
	}
	found := status.Verdict{Reason: reasonOf(why), Message: apierror.Explain(why), Err: why}
	status.NotReady(&s.app.Status, found, s.hub.now())
	return errors.Join(reported(found), s.hub.update(ctx, s.app, s.memory))
}

// call calls the Application, unless it has answered in this attempt, and returns when to look
// again. It stores once for each attempt that a call was made, with the error of the first call.
func (s shutdown) call(ctx context.Context) (time.Duration, error) {
	record, made := *s.app.Hooks.Shutdown, &s.memory.calls
	if !made.isOf(&record) {
		*made = calls{attempt: record.Attempt, deadline: record.Deadline.Time}
	}
	if !made.answered && !s.hub.now().Before(made.next) {
		s.ask(ctx, made)
		if !record.Asked {
			record.Asked, record.Message = true, made.message
			if err := s.record(ctx, record); err != nil {
				return 0, err
			}
		}
	}
	soon := min(record.Deadline.Sub(s.hub.now()), mostCallPause)
	if !made.answered {
		soon = min(soon, made.next.Sub(s.hub.now()))
	}
	return max(soon, time.Millisecond), nil
}

// ask makes one call.
func (s shutdown) ask(ctx context.Context, made *calls) {
	err := s.service.call(ctx)
	if err == nil {
		made.answered, made.message = true, ""
		s.report(s.app, status.Outcome{Action: status.AskedToShutDown, Object: itself(s.app)})
		return
	}
	made.next = s.hub.now().Add(min(leastCallPause<<min(made.failed, 8), mostCallPause))
	made.failed++
	made.message = apierror.Explain(err)
	if unheard, ok := errors.AsType[unheardError](err); ok { // not from an API server
		made.message = apierror.Cut(unheard.Error())
	}
}

func (s shutdown) graceTime() time.Duration {
	return ptr.Deref(s.app.Settings.Shutdown.GraceTime, s.defaults.GraceTime)
}

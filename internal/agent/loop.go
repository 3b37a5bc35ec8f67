package agent

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/internal/right"
)

// passes handle one Application: a pass, or a pass while the target does not answer.
type passes interface {
	Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error)
	Unreachable(ctx context.Context, request ctrl.Request) (ctrl.Result, error)
}

// unsureFor is how long a replica leaves an Application alone while it cannot know whether
// it may act.
const unsureFor = time.Second

// loop handles Applications while this replica may act. Otherwise they wait.
type loop struct {
	right  right.Elector
	passes passes
	turns  *rolloutLimiter
	// passed is called after each pass.
	passed func()
}

// Reconcile implements reconcile.Reconciler.
func (l *loop) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer l.turns.end(request.NamespacedName)
	waited := l.turns.isWaiting(request.NamespacedName)
	result, err := l.pass(ctx, request)
	if waited {
		result.Priority = new(0) // otherwise a requeue keeps the priority with which it was woken
	}
	return result, err
}

func (l *loop) pass(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if l.right.Wait(ctx) != nil || !l.right.Owns(request.Namespace) {
		return ctrl.Result{}, nil // the agent ends, or another shard acts
	}
	ctx, done := right.Outlive(ctx, l.right.Grace())
	defer done()
	switch err := l.right.Target(); {
	case errors.Is(err, right.ErrTargetUnreachable):
		return l.passes.Unreachable(ctx, request)
	case err != nil: // another replica may act by now: it will show
		return ctrl.Result{RequeueAfter: unsureFor}, nil
	}
	defer l.passed()
	return l.passes.Reconcile(ctx, request)
}

package agent

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/internal/discovery"
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
	right  right.Grant
	kinds  *discovery.Kinds
	passes passes
	turns  *turns
}

// Reconcile implements reconcile.Reconciler.
func (l *loop) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	defer l.turns.end(request.NamespacedName)
	if l.turns.isWaiting(request.NamespacedName) { // it came first for its turn, and comes as others do later
		defer func() { result.Priority = new(0) }()
	}
	if l.right.Wait(ctx) != nil {
		return ctrl.Result{}, nil // the agent ends
	}
	if !l.right.Owns(request.Namespace) {
		return ctrl.Result{}, nil
	}
	ctx, done := right.Outlive(ctx, l.right.Grace())
	defer done()
	switch err := l.right.Target(); {
	case errors.Is(err, right.ErrTargetUnreachable):
		return l.passes.Unreachable(ctx, request)
	case err != nil: // another replica may act by now: it will show
		return ctrl.Result{RequeueAfter: unsureFor}, nil
	}
	l.kinds.Forget(request.NamespacedName)
	defer l.turns.crowded() // it notices an empty queue only when it is asked
	return l.passes.Reconcile(ctx, request)
}

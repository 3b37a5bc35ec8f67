package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/internal/discovery"
	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// granted is a right to act, or the errors that deny it.
type granted struct {
	wait, target error
	// another: another shard owns the Applications.
	another bool
}

func (g granted) Wait(ctx context.Context) error { return errors.Join(g.wait, ctx.Err()) }
func (g granted) Target() error                  { return g.target }
func (g granted) Owns(string) bool               { return !g.another }
func (g granted) Grace() time.Duration           { return time.Minute }

// passed records the passes.
type passed struct {
	diary

	ctx context.Context
}

func (p *passed) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p.ctx = ctx
	p.note("pass of %s", request)
	return ctrl.Result{}, nil
}

func (p *passed) Unreachable(_ context.Context, request ctrl.Request) (ctrl.Result, error) {
	p.note("%s is told to be unreachable", request)
	return ctrl.Result{}, nil
}

// A pass needs the right to act. If only the target is unreachable, the status reports it. An
// agent without the right writes nothing, because another may act.
func TestLoop(t *testing.T) {
	cases := []struct {
		name  string
		right granted
		want  []string
		again time.Duration
	}{
		{"it may act", granted{}, []string{"pass of demo/app"}, 0},
		{"the target is away", granted{target: fmt.Errorf("%w: no route", right.ErrTargetUnreachable)}, []string{"demo/app is told to be unreachable"}, 0},
		{"it was stopped, and somebody else may act", granted{target: right.ErrNotActing}, nil, unsureFor},
		{"another shard has the Application", granted{another: true}, nil, 0},
		{"the target is away from another shard's Application", granted{another: true, target: right.ErrTargetUnreachable}, nil, 0},
		{"it ends before its turn", granted{wait: context.Canceled}, nil, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var passes passed
			kinds, turns := discovery.NewKinds(nil, nil, time.Now, logr.Discard()), newTurns(1, nil, never)
			turns.take(appName)
			result, err := (&loop{c.right, kinds, &passes, turns}).Reconcile(t.Context(), ctrl.Request{NamespacedName: appName})
			if err != nil || result.RequeueAfter != c.again {
				t.Errorf("result %v, error %v", result, err)
			}
			check.Equal(t, "passes", c.want, passes.entries)
			check.Equal(t, "the turn is free again", true, turns.take(otherName))
		})
	}
}

// A running pass outlives the agent's context by the Lease's grace period, so that it can
// record its work.
func TestPassesOutlive(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	kept := &keptPass{end: end}
	_, err := (&loop{granted{}, discovery.NewKinds(nil, nil, time.Now, logr.Discard()), kept, newTurns(1, nil, never)}).Reconcile(ctx, ctrl.Request{NamespacedName: appName})
	kit.Must(t, err)
	check.Must(t, kept.during)
}

// keptPass is a pass that runs while the agent is asked to end.
type keptPass struct {
	passed

	end    context.CancelFunc
	during error
}

func (k *keptPass) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	k.end()
	k.during = ctx.Err()
	return ctrl.Result{}, nil
}

// A pass that was woken for its turn came first. Later passes of the Application come as those of others, also after a
// failure. Each pass looks whether the queue is empty.
func TestLoopAfterATurn(t *testing.T) {
	asked := 0
	turns := newTurns(1, func(types.NamespacedName) {}, func() bool { asked++; return false })
	l := &loop{granted{}, discovery.NewKinds(nil, nil, time.Now, logr.Discard()), &passed{}, turns}
	pass := func() *int {
		result, err := l.Reconcile(t.Context(), ctrl.Request{NamespacedName: appName})
		kit.Must(t, err)
		return result.Priority
	}
	check.Equal(t, "the priority after another pass", nil, pass())
	check.Equal(t, "looks at the queue", 1, asked)
	turns.take(otherName)
	turns.take(appName)
	turns.end(appName)
	turns.end(otherName)
	check.Equal(t, "the priority after the pass", new(0), pass())
	check.Equal(t, "the priority after the next pass", nil, pass())
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

var (
	appName   = types.NamespacedName{Namespace: "demo", Name: "app"}
	otherName = types.NamespacedName{Namespace: "demo", Name: "other"}
)

type diary struct{ entries []string }

func (d *diary) note(format string, arguments ...any) {
	d.entries = append(d.entries, fmt.Sprintf(format, arguments...))
}

func (d *diary) noted(entry string) func() { return func() { d.note("%s", entry) } }

// newChanges returns changes with a diary. Their agent has two Applications, one of them not
// stored yet.
func newChanges(refusal *string) (*changes, *diary, *recorder) {
	var noted diary
	var told recorder
	return &changes{
		cluster: "edge",
		acting:  func(cluster string, acting bool) { noted.note("%s acting: %v", cluster, acting) },
		refusal: func() string { return *refusal },
		known:   func() []types.NamespacedName { return []types.NamespacedName{appName, otherName} },
		pending: func() []types.NamespacedName { return []types.NamespacedName{otherName} },
		wake: func(names []types.NamespacedName) {
			for _, name := range names {
				noted.note("wake %s", name)
			}
		},
		renewTarget: noted.noted("renew target"), renewHub: noted.noted("renew hub"),
		resyncTarget: noted.noted("resync target"), resyncHub: noted.noted("resync hub"),
		recorder: &told,
	}, &noted, &told
}

// The calls that each change causes. Applications whose objects may have changed unseen get a
// pass. A cluster that is reachable again is listed at once.
func TestChanges(t *testing.T) {
	one, other := "wake "+appName.String(), "wake "+otherName.String()
	for _, c := range []struct {
		change right.Change
		want   []string
	}{
		{right.Acting, []string{"edge acting: true"}},
		{right.Refused, []string{"edge acting: false"}},
		{right.TargetLost, []string{"renew target", one, other}},
		{right.TargetBack, []string{"renew target", "resync target", one, other}},
		{right.HubLost, []string{"renew hub"}},
		{right.HubBack, []string{"renew hub", "resync hub", other}},
	} {
		t.Run(c.change.String(), func(t *testing.T) {
			changes, noted, _ := newChanges(new(string))
			changes.react(c.change)
			check.Equal(t, "done", c.want, noted.entries)
		})
	}
}

// An Event on the Lease explains why an agent does not act, because its users look there.
func TestRefused(t *testing.T) {
	why := "DuplicateAgent: somebody else"
	changes, _, events := newChanges(&why)
	changes.react(right.Refused)
	lease := corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "krake-agents", Name: "krake-cluster-edge"}
	want := []told{{Regarding: lease, Text: "Warning DuplicateAgent DuplicateAgent: somebody else"}}
	check.Equal(t, "events", want, events.events)
}

type told struct {
	Regarding corev1.ObjectReference
	Text      string
}

type recorder struct{ events []told }

func (r *recorder) Eventf(regarding, _ runtime.Object, eventType, reason, _, _ string, arguments ...any) {
	event := told{Text: strings.Join([]string{eventType, reason, fmt.Sprint(arguments...)}, " ")}
	if one, ok := regarding.(*corev1.ObjectReference); ok {
		event.Regarding = *one
	}
	r.events = append(r.events, event)
}

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
	for _, c := range []struct {
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
	} {
		t.Run(c.name, func(t *testing.T) {
			var passes passed
			turns := newRolloutLimiter(1, nil, never)
			turns.take(appName)
			result, err := (&loop{c.right, &passes, turns, func() {}}).Reconcile(t.Context(), ctrl.Request{NamespacedName: appName})
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
	_, err := (&loop{granted{}, kept, newRolloutLimiter(1, nil, never), func() {}}).Reconcile(ctx, ctrl.Request{NamespacedName: appName})
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
	turns := newRolloutLimiter(1, func(types.NamespacedName) {}, never)
	l := &loop{granted{}, &passed{}, turns, func() { asked++ }}
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

// The controller logs each error of a pass. Only those that no status states are for the
// administrator of the agent.
func TestErrorsThatTheStatusStatesAreNotLogged(t *testing.T) {
	var lines []string
	logger := funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, funcr.Options{})
	of := logOf(logger.WithName("loop"))
	forbidden, broken := reconcile.UserFacing(errors.New("forbidden")), errors.New("broken")
	for _, request := range []*ctrl.Request{nil, {NamespacedName: appName}} {
		lines = nil
		log := of(request).WithName("controller").WithValues("a", "b")
		log.Error(apierror.Scrub(forbidden), "Reconciler error")
		log.Error(errors.Join(forbidden, forbidden), "Reconciler error")
		check.Equal(t, "lines", []string(nil), lines)
		log.Error(errors.Join(forbidden, broken), "Reconciler error")
		log.Info("started")
		if len(lines) != 2 || !strings.Contains(lines[0], "broken") || strings.Contains(lines[1], appName.String()) != (request != nil) {
			t.Errorf("lines %q", lines)
		}
	}
}

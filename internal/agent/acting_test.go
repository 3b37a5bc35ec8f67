package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/internal/leases"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// diary takes note of what is called.
type diary struct{ entries []string }

func (d *diary) note(format string, arguments ...any) {
	d.entries = append(d.entries, fmt.Sprintf(format, arguments...))
}

func (d *diary) noted(entry string) func() { return func() { d.note("%s", entry) } }

// newChanges are changes of which everything is noted, of an agent with two
// Applications, one of them not stored yet.
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

// What a change calls for: those whose objects may have changed unseen are looked
// at, and of what is new on the hub the hub is asked, not waited for.
func TestChanges(t *testing.T) {
	one, other := "wake "+appName.String(), "wake "+otherName.String()
	cases := []struct {
		change leases.Change
		want   []string
	}{
		{leases.Acting, []string{"edge acting: true"}},
		{leases.Refused, []string{"edge acting: false"}},
		{leases.TargetLost, []string{"renew target", one, other}},
		{leases.TargetBack, []string{"renew target", "resync target", one, other}},
		{leases.HubLost, []string{"renew hub"}},
		{leases.HubBack, []string{"renew hub", "resync hub", other}},
	}
	for _, c := range cases {
		t.Run(c.change.String(), func(t *testing.T) {
			changes, noted, _ := newChanges(new(string))
			changes.tell(c.change)
			check.Equal(t, "done", c.want, noted.entries)
		})
	}
}

// Why an agent does not act is told by an Event of the Lease that it does not get:
// who looks for the reason looks there.
func TestRefused(t *testing.T) {
	why := "DuplicateAgent: somebody else"
	changes, _, events := newChanges(&why)
	changes.tell(leases.Refused)
	lease := corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "krake-agents", Name: "krake-cluster-edge"}
	want := []told{{Regarding: lease, Text: "Warning DuplicateAgent DuplicateAgent: somebody else"}}
	check.Equal(t, "events", want, events.events)
}

// granted is a right to act, or what stands against it.
type granted struct{ wait, target error }

func (g granted) Wait(ctx context.Context) error { return errors.Join(g.wait, ctx.Err()) }
func (g granted) Target() error                  { return g.target }
func (g granted) Grace() time.Duration           { return time.Minute }

// passed takes note of the passes.
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

// A pass needs the right to act. Where only the target is away, that is said; one
// that may not act says nothing, for somebody else may.
func TestLoop(t *testing.T) {
	cases := []struct {
		name  string
		right granted
		want  []string
		again time.Duration
	}{
		{"it may act", granted{}, []string{"pass of demo/app"}, 0},
		{"the target is away", granted{target: fmt.Errorf("%w: no route", leases.ErrTargetUnreachable)}, []string{"demo/app is told to be unreachable"}, 0},
		{"it was stopped, and somebody else may act", granted{target: leases.ErrNotActing}, nil, unsureFor},
		{"it ends before its turn", granted{wait: context.Canceled}, nil, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var passes passed
			kinds := newKinds(nil, nil, time.Now)
			result, err := (&loop{c.right, kinds, &passes}).Reconcile(t.Context(), ctrl.Request{NamespacedName: appName})
			if err != nil || result.RequeueAfter != c.again {
				t.Errorf("result %v, error %v", result, err)
			}
			check.Equal(t, "passes", c.want, passes.entries)
		})
	}
}

// A pass under way outlives the agent's context by the Lease's grace: what it has
// begun it can record.
func TestPassesOutlive(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	kept := &keptPass{end: end}
	_, err := (&loop{granted{}, newKinds(nil, nil, time.Now), kept}).Reconcile(ctx, ctrl.Request{NamespacedName: appName})
	kit.Must(t, err)
	if kept.during != nil {
		t.Errorf("the pass was cut off: %v", kept.during)
	}
}

// keptPass is a pass during which the agent is to end.
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

// The right to act alone is not enough: first, what is known is compared with
// what there is.
func TestConfirmed(t *testing.T) {
	compared, asked := make(chan struct{}), make(chan struct{})
	ending, end := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { waited <- confirmed{askedFor{granted{}, asked}, compared}.Wait(ending) }()
	<-asked
	end()
	if err := <-waited; err == nil {
		t.Error("it acts before it has compared")
	}
	close(compared)
	if err := (confirmed{granted{}, compared}).Wait(t.Context()); err != nil {
		t.Errorf("it has compared, and does not act: %v", err)
	}
	refused := confirmed{granted{wait: context.Canceled}, compared}
	if err := refused.Wait(t.Context()); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("it acts without the right: %v", err)
	}
}

// askedFor says when it is waited for.
type askedFor struct {
	granted

	asked chan<- struct{}
}

func (a askedFor) Wait(context.Context) error {
	close(a.asked)
	return nil
}

// What is done beside the passes begins with the right to act, too.
func TestOnceActing(t *testing.T) {
	ran := false
	run := func(context.Context) error {
		ran = true
		return errors.New("it failed")
	}
	if err := onceActing(granted{wait: context.Canceled}, run)(t.Context()); !errors.Is(err, context.Canceled) || ran {
		t.Errorf("without the right: it ran: %v, error %v", ran, err)
	}
	if err := onceActing(granted{}, run)(t.Context()); err == nil || !ran {
		t.Errorf("with the right: it ran: %v, error %v", ran, err)
	}
}

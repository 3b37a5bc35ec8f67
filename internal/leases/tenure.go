package leases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// Why a process may not write.
var (
	// ErrLost ends a process: somebody else has, or has had, a Lease of ours.
	ErrLost = errors.New("the Lease was lost")
	// ErrTargetUnreachable: the Lease on the target cannot be renewed, and nobody
	// is known to have taken it.
	ErrTargetUnreachable = errors.New("the target is unreachable")
	// ErrNotActing: this process has not the right to act, or cannot know.
	ErrNotActing = errors.New("this agent does not act")

	errEnded = errors.New("it ends")
)

// Options are whose right it is, and how it is kept.
type Options struct {
	Cluster   string
	Namespace string // of the Lease on the target
	Identity  string // of this process, and of no other one ever
	Elect     bool   // false: act without a Lease on the target

	// How long the Lease on the target lasts, how long it may go without renewal
	// until this process writes no more, and how often it is renewed.
	Duration, RenewDeadline, RetryPeriod time.Duration
	// Heartbeat is how often the Lease on the hub is renewed; it lasts four times
	// as long.
	Heartbeat time.Duration

	Target, Hub coordinationv1client.LeasesGetter
	// TargetUID gives the UID of the target's namespace kube-system.
	TargetUID func(ctx context.Context) (types.UID, error)
	// Changed is told of every change, one after the other. It must not block.
	Changed func(Change)
	Logger  logr.Logger
}

// What Options without times have.
const (
	DefaultDuration      = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
	DefaultHeartbeat     = 20 * time.Second
)

func (o Options) withDefaults() Options {
	o.Duration = cmp.Or(o.Duration, DefaultDuration)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, DefaultRenewDeadline)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, DefaultRetryPeriod)
	o.Heartbeat = cmp.Or(o.Heartbeat, DefaultHeartbeat)
	if o.Changed == nil {
		o.Changed = func(Change) {}
	}
	return o
}

// Change is what has become of a right.
type Change int

const (
	// Acting: this process may act from now on. It is told once.
	Acting Change = iota
	// Refused: it may not, and [Tenure.Refusal] says why.
	Refused
	// TargetLost: the target does not answer, and nothing may be written to it.
	TargetLost
	// TargetBack: it answers again, and nobody has acted in between.
	TargetBack
	// HubLost: the hub does not answer. What is to be written to it waits.
	HubLost
	// HubBack: it answers again.
	HubBack
)

// String gives the name of the constant.
func (c Change) String() string {
	return [...]string{"Acting", "Refused", "TargetLost", "TargetBack", "HubLost", "HubBack"}[c]
}

// Tenure is the right of one process to act. It ends with [Tenure.Run].
type Tenure struct {
	options Options
	acting  chan struct{} // closed when both Leases were had for the first time
	target  *target       // nil: without a Lease there
	hub     *hub

	mu      sync.Mutex
	refusal string
	over    error // why it has ended

	telling sync.Mutex
}

// New makes a Tenure, which gives no right before Run is called.
func New(options Options) *Tenure {
	options = options.withDefaults()
	t := &Tenure{options: options, acting: make(chan struct{})}
	if options.Elect {
		t.target = newTarget(t)
	}
	t.hub = newHub(t)
	return t
}

// Run asks for the Leases and keeps them until the context ends: then, when
// nobody may write any more, it gives them back. It ends early, with ErrLost, when
// one is lost.
func (t *Tenure) Run(ctx context.Context) error {
	loops, loopsCtx := errgroup.WithContext(ctx)
	keep := func(loop func(context.Context) error) {
		loops.Go(func() error {
			err := loop(loopsCtx)
			t.end(err)
			return err
		})
	}
	if t.target != nil {
		keep(t.target.keep)
	}
	keep(t.hub.keep)
	err := loops.Wait()
	t.giveBack(context.WithoutCancel(ctx), err)
	return err
}

// Wait waits until this process may act for the first time. It gives an error
// only if the context ends before, and never returns before that when the
// Leases were lost.
func (t *Tenure) Wait(ctx context.Context) error {
	select {
	case <-t.acting:
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.ended() == nil {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// Target is nil if something may be written to the target now. Otherwise its
// error wraps ErrTargetUnreachable or ErrNotActing. It looks at the clock when it
// is called: a process that was stopped and goes on has it right at once.
func (t *Tenure) Target() error {
	if err := t.Hub(); err != nil || t.target == nil {
		return err
	}
	return t.target.check()
}

// Hub is nil if something may be written to the hub, whether it answers or not.
// Otherwise its error wraps ErrNotActing.
func (t *Tenure) Hub() error {
	if err := t.ended(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotActing, err)
	}
	select {
	case <-t.acting:
		return nil
	default:
	}
	if refusal := t.Refusal(); refusal != "" {
		return fmt.Errorf("%w: %s", ErrNotActing, refusal)
	}
	return fmt.Errorf("%w: it waits for its Leases", ErrNotActing)
}

// Grace is how long a pass that is under way may go on when the right has ended.
func (t *Tenure) Grace() time.Duration {
	const most = 4 * time.Second
	return min(most, (t.options.Duration-t.options.RenewDeadline)*4/5)
}

// Refusal says why this agent does not act, "DuplicateAgent: ...", and is empty
// if it acts or only waits for its turn.
func (t *Tenure) Refusal() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refusal
}

// end is called when the right ends, before anything else learns it.
func (t *Tenure) end(why error) {
	if why == nil {
		why = errEnded
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over == nil {
		t.over = why
	}
}

func (t *Tenure) ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// act begins the tenure.
func (t *Tenure) act() {
	t.mu.Lock()
	t.refusal = ""
	t.mu.Unlock()
	close(t.acting)
	t.options.Logger.Info("acts from now on")
	t.tell(Acting)
}

// refuse says why it does not begin.
func (t *Tenure) refuse(why string) {
	if why == t.Refusal() {
		return
	}
	t.mu.Lock()
	t.refusal = why
	t.mu.Unlock()
	t.options.Logger.Info("does not act", "reason", why)
	t.tell(Refused)
}

// tell is called by both loops.
func (t *Tenure) tell(c Change) {
	t.telling.Lock()
	defer t.telling.Unlock()
	t.options.Changed(c)
}

// giveBack has the next agent wait for nothing. A Lease on the target is kept
// when another one was lost: passes are under way still.
func (t *Tenure) giveBack(ctx context.Context, why error) {
	const timeout = 5 * time.Second // the process is about to be killed
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { t.leave(ctx, t.hub.lease) })
	if t.target != nil && why == nil {
		both.Go(func() { t.leave(ctx, t.target.lease) })
	}
	both.Wait()
}

func (t *Tenure) leave(ctx context.Context, l *lease) {
	if err := l.giveBack(ctx); err != nil {
		t.options.Logger.Error(err, "a Lease was not given back, and lasts until it expires")
	}
}

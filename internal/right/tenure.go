package right

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Tenure is the right of one process to act. It ends with [Tenure.Run].
type Tenure struct {
	options  Options
	standing *standing
	target   *targetKeeper // nil: without a Lease there
	hub      *hubKeeper
}

// New makes a Tenure, which grants nothing before Run is called.
func New(options Options) *Tenure {
	options = options.withDefaults()
	t := &Tenure{options: options, standing: newStanding(options)}
	if options.Elect {
		t.target = newTargetKeeper(options, t.standing)
	}
	t.hub = newHubKeeper(options, t.standing, t.target)
	return t
}

// Run asks for the Leases and keeps them until the context ends. When no write can
// follow any more, it releases them. It ends early, with ErrLost, when one is lost.
func (t *Tenure) Run(ctx context.Context) error {
	loops, loopsCtx := errgroup.WithContext(ctx)
	keep := func(loop func(context.Context) error) {
		loops.Go(func() error {
			err := loop(loopsCtx)
			t.standing.end(err)
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

// Wait waits until this process may act for the first time. It returns an error
// only if the context ends before, and when the Leases were lost it returns no
// earlier than that.
func (t *Tenure) Wait(ctx context.Context) error {
	select {
	case <-t.standing.acting:
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.standing.ended() == nil {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// Target is nil if something may be written to the target now. If not, its error
// wraps ErrTargetUnreachable or ErrNotActing. It reads the clock on each call: a
// process that was stopped and goes on has the right answer at once.
func (t *Tenure) Target() error {
	if err := t.Hub(); err != nil || t.target == nil {
		return err
	}
	return t.target.check()
}

// Hub is nil if something may be written to the hub, whether it answers or not. If
// not, its error wraps ErrNotActing.
func (t *Tenure) Hub() error {
	if err := t.standing.ended(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotActing, err)
	}
	select {
	case <-t.standing.acting:
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

// Refusal is why this agent must not act, "DuplicateAgent: ...", and is empty if it
// acts or only waits for its turn.
func (t *Tenure) Refusal() string { return t.standing.refusal() }

// giveBack spares the next agent the wait. A Lease on the target is kept when
// another one was lost: passes are under way still.
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

func (t *Tenure) leave(ctx context.Context, l *leaseRecord) {
	if err := l.giveBack(ctx); err != nil {
		t.options.Logger.Error(err, "a Lease was not given back, and lasts until it expires")
	}
}

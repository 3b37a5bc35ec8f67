package right

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Leadership is the right of one process to act. It ends with [Leadership.Run].
type Leadership struct {
	options Options
	state   *state
	target  *targetKeeper // nil: without a Lease there
	hub     *hubKeeper
}

// New makes a Leadership, which grants nothing before Run is called.
func New(options Options) *Leadership {
	options = options.withDefaults()
	t := &Leadership{options: options, state: &state{logger: options.Logger, acting: make(chan struct{})}}
	if options.Elect {
		t.target = newTargetKeeper(options, t.state)
	}
	t.hub = newHubKeeper(options, t.state, t.target)
	return t
}

// Run acquires the Leases and keeps them until the context ends. It releases them when no
// further write is possible. If one is lost, it returns ErrLost early, and resync.ErrRestored
// if a server has an older version of one than before. It calls changed with each change, one
// at a time; changed must not block.
func (t *Leadership) Run(ctx context.Context, changed func(Change)) error {
	t.state.changed = changed
	loops, loopsCtx := errgroup.WithContext(ctx)
	keep := func(loop func(context.Context) error) {
		loops.Go(func() error {
			err := loop(loopsCtx)
			t.state.end(err)
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

// Wait waits until this process may act for the first time. It returns an error only when
// the context ends. If the Leases are lost before, it also waits for that.
func (t *Leadership) Wait(ctx context.Context) error {
	select {
	case <-t.state.acting:
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.state.ended() == nil {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// Target returns nil if this process may write to the target now. Otherwise the error
// wraps ErrTargetUnreachable or ErrNotActing. It reads the clock on each call, so that
// the answer is right at once after the process was stopped and resumed.
func (t *Leadership) Target() error {
	if err := t.Hub(); err != nil || t.target == nil {
		return err
	}
	return t.target.check()
}

// Hub returns nil if this process may write to the hub, whether it answers or not.
// Otherwise the error wraps ErrNotActing.
func (t *Leadership) Hub() error {
	if err := t.state.ended(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotActing, err)
	}
	select {
	case <-t.state.acting:
		return nil
	default:
	}
	if refusal := t.Refusal(); refusal != "" {
		return fmt.Errorf("%w: %s", ErrNotActing, refusal)
	}
	return fmt.Errorf("%w: it waits for its Leases", ErrNotActing)
}

// Owns reports whether this process acts for the Applications of a namespace of the hub. It owns none while it may not
// write to the hub.
func (t *Leadership) Owns(namespace string) bool {
	return t.Hub() == nil && (t.options.Shards <= 1 || shardOf(namespace, t.options.Shards) == t.target.leases.shard)
}

// Grace is how long a running pass may continue after the right has ended.
func (t *Leadership) Grace() time.Duration {
	const most = 4 * time.Second
	return min(most, (t.options.Duration-t.options.RenewDeadline)*4/5)
}

// Refusal returns why this agent must not act, "DuplicateAgent: ...". It is empty if the
// agent acts or only waits for its turn.
func (t *Leadership) Refusal() string { return t.state.refusal() }

// giveBack releases the Leases, so that the next agent need not wait. The Lease on the
// target is not released if the other one was lost: passes are still running.
func (t *Leadership) giveBack(ctx context.Context, why error) {
	const timeout = 5 * time.Second // the process is about to be killed
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { t.leave(ctx, t.hub.lease) })
	if t.target != nil && t.target.leases.own != nil && why == nil {
		both.Go(func() { t.leave(ctx, t.target.leases.own) })
	}
	both.Wait()
}

func (t *Leadership) leave(ctx context.Context, l *leaseRecord) {
	if err := l.giveBack(ctx); err != nil {
		t.options.Logger.Error(err, "a Lease was not released, and lasts until it expires")
	}
}

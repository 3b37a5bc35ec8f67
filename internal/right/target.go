package right

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// failuresOfTarget is how many renewals must fail until the target counts as unreachable.
// One failure may be our own: a process that was stopped meanwhile finds that its request
// took too long.
const failuresOfTarget = 2

// targetKeeper keeps the Lease on the target, or that of one of the shards.
type targetKeeper struct {
	options Options
	state   *state
	leases  *shardLeases
	held    chan struct{} // closed when this process first held one, and no other divides the Applications otherwise
	term    int32         // of the own Lease: it must never change
	uid     types.UID     // of the own Lease, which the other keeper reads once held is closed

	mu       sync.Mutex
	renewed  time.Time
	failures int   // since then
	lost     error // the target is lost, by this failure
}

func newTargetKeeper(options Options, state *state) *targetKeeper {
	return &targetKeeper{
		options: options,
		state:   state,
		leases: newShardLeases(options.Cluster, options.Shards, leaseRecord{
			client:    options.Target.Leases(options.Namespace),
			namespace: options.Namespace,
			server:    "target",
			identity:  options.Identity,
			lasts:     options.Duration,
		}),
		held: make(chan struct{}),
	}
}

// keep acquires the Lease and renews it until the context ends or it is lost.
func (t *targetKeeper) keep(ctx context.Context) error {
	for {
		began := time.Now()
		if err := t.step(ctx); err != nil {
			return err
		}
		if !pause(ctx, t.options.RetryPeriod-time.Since(began)) {
			return nil
		}
	}
}

// step sends one request for the Lease. The time limit leaves room for two before the
// renewal is overdue, even if the target answers neither. The end of the process does not
// cut the request off: the server might carry it out later, and no process would release the
// Lease.
func (t *targetKeeper) step(ctx context.Context) error {
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), (t.options.RenewDeadline-t.options.RetryPeriod)/failuresOfTarget)
	defer cancel()
	from, err := t.ask(request)
	if err == nil && !from.IsZero() {
		t.succeeded(from)
		err = t.begin(request)
	}
	switch {
	case endsProcess(err):
		return err
	case ctx.Err() != nil:
		return nil
	case err != nil:
		t.failed(err)
	case from.IsZero():
		t.answered()
	}
	return nil
}

// ask renews the Lease, or takes one that is free. It returns the time from which that lasts.
func (t *targetKeeper) ask(ctx context.Context) (from time.Time, err error) {
	if t.leases.own != nil {
		return t.leases.own.ask(ctx, true, t.leases.claim, t.mayKeep)
	}
	if from, err = t.leases.take(ctx); t.leases.own != nil {
		t.term = t.leases.own.term()
	}
	return from, err
}

// begin begins the right of a process that has a Lease.
func (t *targetKeeper) begin(ctx context.Context) error {
	if t.isHeld() {
		return nil
	}
	alone, err := t.leases.isAlone(ctx)
	if alone {
		t.uid = t.leases.own.known.UID
		t.options.Logger.Info("holds the Lease on the target", "lease", t.leases.own.name)
		close(t.held)
	}
	return err
}

func (t *targetKeeper) isHeld() bool {
	select {
	case <-t.held:
		return true
	default:
		return false
	}
}

// mayKeep returns ErrLost if another process has, or has had, our Lease. A missing Lease may
// mean another cluster at the same address.
func (t *targetKeeper) mayKeep() (bool, error) {
	own := t.leases.own
	if own.known == nil {
		return false, fmt.Errorf("%w: %s is gone", ErrLost, own)
	}
	if !own.isOurs() || own.term() != t.term {
		return false, fmt.Errorf("%w: %s was taken, its holder is %q", ErrLost, own, own.holder())
	}
	return true, nil
}

// failed records that a request failed. It logs only the first of consecutive failures.
func (t *targetKeeper) failed(err error) {
	first, lost := t.fail(err)
	if first {
		t.options.Logger.Info("a request for the Lease on the target failed, and is made again", "error", err.Error())
	}
	if lost {
		t.options.Logger.Error(err, "the target is lost")
		t.state.report(TargetLost)
	}
}

// fail counts the failure. It reports whether it is the first one, and whether it makes the
// target lost.
func (t *targetKeeper) fail(err error) (first, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures++
	if t.isHeld() && t.lost == nil && t.failures >= failuresOfTarget && t.isOverdueLocked() {
		t.lost, lost = err, true
	}
	return t.failures == 1, lost
}

// answered records that another process holds the Lease.
func (t *targetKeeper) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = 0
}

// succeeded records the time since which the Lease is ours.
func (t *targetKeeper) succeeded(from time.Time) {
	if t.succeed(from) {
		t.options.Logger.Info("the target is back")
		t.state.report(TargetBack)
	}
}

// succeed records the success, and reports whether the target is back.
func (t *targetKeeper) succeed(from time.Time) (back bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	back = t.lost != nil
	t.renewed, t.failures, t.lost = from, 0, nil
	return back
}

// check returns nil if this process may write to the target now.
func (t *targetKeeper) check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.isOverdueLocked():
		return nil
	case t.lost != nil:
		// The cause was logged, and is neither wrapped nor repeated. client-go repeats a
		// request whose error looks like a reset connection, even by its text. It would
		// do so until the target is back, and then send outdated writes.
		return ErrTargetUnreachable
	}
	return fmt.Errorf("%w: %s was not renewed in time", ErrNotActing, t.leases.own)
}

// isOverdueLocked uses the monotonic clock.
func (t *targetKeeper) isOverdueLocked() bool {
	return time.Since(t.renewed) >= t.options.RenewDeadline
}

package right

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// failuresOfTarget is how many renewals must fail until that is the target's
// fault. One of them may have been our own: a process that was stopped meanwhile
// finds that its request took too long.
const failuresOfTarget = 2

// targetKeeper keeps the Lease on the target.
type targetKeeper struct {
	options  Options
	standing *standing
	lease    *leaseRecord
	held     chan struct{} // closed when it was had for the first time

	// Of the Lease as it was then, and must be ever after.
	uid  types.UID
	term int32

	mu       sync.Mutex
	renewed  time.Time
	failures int   // since then
	lost     error // the target is lost, by this failure
}

func newTargetKeeper(options Options, standing *standing) *targetKeeper {
	return &targetKeeper{
		options:  options,
		standing: standing,
		lease: &leaseRecord{
			client:    options.Target.Leases(options.Namespace),
			namespace: options.Namespace,
			name:      application.TargetLease(options.Cluster),
			server:    "target",
			identity:  options.Identity,
			lasts:     options.Duration,
		},
		held: make(chan struct{}),
	}
}

// keep asks for the Lease and renews it until the context ends or it is lost.
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

// step is one request for the Lease. Two of them have room before the renewal
// is overdue, be it that the target swallows both.
func (t *targetKeeper) step(ctx context.Context) error {
	request, cancel := context.WithTimeout(ctx, (t.options.RenewDeadline-t.options.RetryPeriod)/failuresOfTarget)
	defer cancel()
	from, err := t.lease.ask(request, t.isHeld(), t.lease.claim, t.mayTake)
	switch {
	case errors.Is(err, ErrLost):
		return err
	case ctx.Err() != nil:
		return nil
	case err != nil:
		t.failed(err)
	case from.IsZero():
		t.answered()
	default:
		t.succeeded(from)
	}
	return nil
}

func (t *targetKeeper) isHeld() bool {
	select {
	case <-t.held:
		return true
	default:
		return false
	}
}

// mayTake finds out whether another process has, or has had, what was ours. A Lease
// that is gone may be that of another cluster at the same address.
func (t *targetKeeper) mayTake() (bool, error) {
	if !t.isHeld() {
		return t.lease.isFree(), nil
	}
	if t.lease.known == nil {
		return false, fmt.Errorf("%w: %s is gone", ErrLost, t.lease)
	}
	if !t.lease.isOurs() || t.lease.term() != t.term {
		return false, fmt.Errorf("%w: %s was taken, its holder is %q", ErrLost, t.lease, t.lease.holder())
	}
	return true, nil
}

// failed records that a request failed. Of those in a row the first is logged.
func (t *targetKeeper) failed(err error) {
	first, lost := t.fail(err)
	if first {
		t.options.Logger.Info("a request for the Lease on the target failed, and is made again", "error", err.Error())
	}
	if lost {
		t.options.Logger.Error(err, "the target is lost")
		t.standing.report(TargetLost)
	}
}

// fail reports whether this is the first failure, and whether the target is lost by it.
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

// succeeded records since when the Lease is ours, or is so again.
func (t *targetKeeper) succeeded(from time.Time) {
	if t.succeed(from) {
		t.options.Logger.Info("the target is back")
		t.standing.report(TargetBack)
	}
	if !t.isHeld() {
		t.uid, t.term = t.lease.known.UID, t.lease.term()
		t.options.Logger.Info("holds the Lease on the target")
		close(t.held)
	}
}

// succeed reports whether the target is back by this.
func (t *targetKeeper) succeed(from time.Time) (back bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	back = t.lost != nil
	t.renewed, t.failures, t.lost = from, 0, nil
	return back
}

// check is nil if something may be written to the target now.
func (t *targetKeeper) check() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.isOverdueLocked():
		return nil
	case t.lost != nil:
		// The cause was logged, and is neither wrapped nor repeated: what looks like a
		// connection that was reset, be it by its text, is tried again by client-go, and
		// would be until the target is back, with what it was to do long ago.
		return ErrTargetUnreachable
	}
	return fmt.Errorf("%w: %s was not renewed in time", ErrNotActing, t.lease)
}

// isOverdueLocked is decided by the monotonic clock.
func (t *targetKeeper) isOverdueLocked() bool {
	return time.Since(t.renewed) >= t.options.RenewDeadline
}

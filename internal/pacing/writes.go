package pacing

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Urgency is how soon people must see the changes of a status.
type Urgency int

// The urgencies. Nothing means that nothing has changed. Texts are messages, counts and the health
// of single objects, with unchanged state and reasons. Records are the history and the observed
// values. All other changes are Urgent.
const (
	Nothing Urgency = iota
	Texts
	Records
	Urgent
)

const (
	// leastInterval is the minimum time between two writes of an Application's status. Frequent
	// writes of records wait longer, up to mostInterval: each costs hub and agent as much as a
	// repair.
	leastInterval = time.Second
	mostInterval  = 5 * time.Second
	// textInterval is the minimum time before a write of texts. The first one after an urgent write
	// waits only for mostInterval. The reason why an object is not ready is often known a moment
	// after the agent has written it, and then stays the same.
	textInterval = 30 * time.Second
)

// StatusWrites paces the writes of one Application's status. The zero value is ready to use.
type StatusWrites struct {
	// isKnown reports that the stored status is known: this process has written it, or has found
	// nothing to write.
	isKnown bool
	// written is when the status was last written, zero if this process has not written it.
	written time.Time
	// interval is the interval of records.
	interval time.Duration
	// hasPaced reports that a non-urgent write followed the last urgent one.
	hasPaced bool
	// turn is the turn of the next non-urgent write, zero without one.
	turn time.Time
}

// IsFirst reports whether the next write is the first one, or the first after a failure. It need
// not wait, whatever its urgency. After a restart that finds nothing to write, no write is the first:
// otherwise the records of all Applications would be written at once.
func (w *StatusWrites) IsFirst() bool { return !w.isKnown }

// Delay returns how long a write of this urgency has to wait, 0 if it need not. A non-urgent write
// waits for its interval, and then for its turn among all Applications.
func (w *StatusWrites) Delay(urgency Urgency, limiter *StatusWriteLimiter, now time.Time) time.Duration {
	if urgency == Nothing || w.IsFirst() {
		return 0
	}
	if wait := w.written.Add(w.intervalOf(urgency)).Sub(now); wait > 0 {
		return wait
	}
	if urgency == Urgent {
		return 0
	}
	if w.turn.IsZero() {
		w.turn = now.Add(limiter.Reserve(now))
	}
	return max(0, w.turn.Sub(now))
}

func (w *StatusWrites) intervalOf(urgency Urgency) time.Duration {
	switch {
	case urgency == Urgent:
		return leastInterval
	case urgency == Records:
		return w.interval
	case w.hasPaced:
		return textInterval
	}
	return mostInterval
}

// RecordWrite records a write of the status.
func (w *StatusWrites) RecordWrite(urgency Urgency, now time.Time) {
	next := leastInterval
	if now.Sub(w.written) < 2*w.interval { // this write waited, or nearly so
		next = min(2*w.interval, mostInterval)
	}
	*w = StatusWrites{isKnown: true, written: now, interval: next, hasPaced: urgency != Urgent}
}

// RecordStored records that the whole status is stored.
func (w *StatusWrites) RecordStored() { w.isKnown, w.turn = true, time.Time{} }

// RecordFailure records a failed write: the next one need not wait.
func (w *StatusWrites) RecordFailure() { w.isKnown, w.written = false, time.Time{} }

// The limits of the non-urgent status writes of all Applications: the rate for each second, the
// burst after an idle time, and the longest wait.
const (
	pacedPerSecond, pacedAtOnce = 5, 5
	longestTurnWait             = 20 * time.Second
)

// StatusWriteLimiter limits the rate of the non-urgent status writes of all Applications. Such a write costs the
// API server as much as a repair: in a storm or a rollout, they would delay the repairs. The zero
// value is ready to use.
type StatusWriteLimiter struct {
	once    sync.Once
	limiter *rate.Limiter
}

// Reserve takes a turn and returns the time until then.
func (t *StatusWriteLimiter) Reserve(now time.Time) time.Duration {
	t.once.Do(func() { t.limiter = rate.NewLimiter(pacedPerSecond, pacedAtOnce) })
	turn := t.limiter.ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait > longestTurnWait {
		turn.CancelAt(now)
		return longestTurnWait
	}
	return wait
}

package pacing

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// leastInterval is the least time between two writes of an Application's status. Frequent writes that change
// neither state nor condition wait longer, up to mostInterval: each costs hub and agent as much as a repair.
const (
	leastInterval = time.Second
	mostInterval  = 5 * time.Second
)

// StatusWrites paces the writes of one Application's status.
type StatusWrites struct {
	// state and conditions are those that are stored, nil if they were not looked at.
	state      application.State
	conditions []metav1.Condition
	// written is when the status was last written. After it, a write that changes neither state nor
	// condition waits for the interval.
	written  time.Time
	interval time.Duration
	// historyDue is when a write that only records repairs may be sent.
	historyDue time.Time
}

// Delay returns how long a write of this status has to wait, 0 if it need not.
func (w *StatusWrites) Delay(status application.Status, now time.Time) time.Duration {
	next := w.written.Add(leastInterval)
	if w.state == status.State && slices.EqualFunc(w.conditions, status.Conditions, sayTheSame) {
		next = w.written.Add(w.interval)
		if w.historyDue.After(next) {
			next = w.historyDue
		}
	}
	return max(0, next.Sub(now))
}

// Queue has the next write that only records repairs wait for its turn among all Applications.
func (w *StatusWrites) Queue(turns *Turns, now time.Time) {
	w.historyDue = now.Add(turns.Reserve(now))
}

// RecordStored takes over what is stored of the status.
func (w *StatusWrites) RecordStored(status application.Status) {
	w.state, w.conditions = status.State, slices.Clone(status.Conditions)
}

// RecordWrite takes over a write of the status.
func (w *StatusWrites) RecordWrite(status application.Status, now time.Time) {
	next := leastInterval
	if now.Sub(w.written) < 2*w.interval { // this write waited, or nearly so
		next = min(2*w.interval, mostInterval)
	}
	w.RecordStored(status)
	w.written, w.interval, w.historyDue = now, next, time.Time{}
}

// RecordFailure takes over that a write failed: the next one need not wait.
func (w *StatusWrites) RecordFailure() { w.written = time.Time{} }

func sayTheSame(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// The status writes of all Applications that only record repairs: how many a second, how many at once after
// a time without, and the longest wait.
const (
	historiesPerSecond, historiesAtOnce = 5, 5
	longestHistoryWait                  = 20 * time.Second
)

// Turns makes the status writes of all Applications that only record repairs wait for each other. Such a
// write costs the API server as much as a repair: in a storm, they would delay the repairs. The zero value is
// ready to use.
type Turns struct {
	once    sync.Once
	limiter *rate.Limiter
}

// Reserve takes a turn and returns how long it is away.
func (t *Turns) Reserve(now time.Time) time.Duration {
	t.once.Do(func() { t.limiter = rate.NewLimiter(historiesPerSecond, historiesAtOnce) })
	turn := t.limiter.ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait > longestHistoryWait {
		turn.CancelAt(now)
		return longestHistoryWait
	}
	return wait
}

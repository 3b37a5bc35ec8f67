package reconcile

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Of the writes of a status that tell of repairs and of nothing else, so many are made in
// a second, and at once after a time without; the others wait, for so long at most.
const (
	historiesPerSecond, historiesAtOnce = 5, 5
	longestHistoryWait                  = 20 * time.Second
)

// turns has writes wait for each other. Such a write costs the API server what a repair
// costs: made at once, in a storm, they would be in the way of the repairs.
type turns struct {
	once    sync.Once
	limiter *rate.Limiter
}

// wait gives how long one more has to wait.
func (t *turns) wait(now time.Time) time.Duration {
	t.once.Do(func() { t.limiter = rate.NewLimiter(historiesPerSecond, historiesAtOnce) })
	turn := t.limiter.ReserveN(now, 1)
	long := turn.DelayFrom(now)
	if long > longestHistoryWait {
		turn.CancelAt(now)
		return longestHistoryWait
	}
	return long
}

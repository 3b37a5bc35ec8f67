package pacing

import (
	"sync"
	"time"
)

// outageRest is the pause before the next request to a server that does not answer.
const outageRest = 3 * time.Second

// Outage knows whether a server answers. While it does not, one request in each outageRest is an
// attempt, and all others are omitted. A pass that waits for the hub would delay the next repair.
type Outage struct {
	mu     sync.Mutex
	silent bool
	until  time.Time
}

// Record records whether the server answered a request.
func (o *Outage) Record(silent bool, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.silent, o.until = silent, now.Add(outageRest)
}

// Reserve returns how long to leave the server alone. A result of 0 during an outage makes the
// caller's request the next attempt. Others wait for its outcome.
func (o *Outage) Reserve(now time.Time) (rest time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.silent {
		return 0
	}
	if rest := o.until.Sub(now); rest > 0 {
		return rest
	}
	o.until = now.Add(outageRest)
	return 0
}

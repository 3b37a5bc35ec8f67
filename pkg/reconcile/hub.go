package reconcile

import (
	"sync"
	"time"
)

// How long a hub that does not answer is left alone: longer each time.
const (
	firstRest = time.Second
	lastRest  = 30 * time.Second
)

// hub is what is known of how the hub answers. While it does not, the objects are
// healed from what is known, and what there is to store waits: a pass that waited
// for the hub would hold up the next repair.
type hub struct {
	mu    sync.Mutex
	pause time.Duration
	until time.Time
}

// answered takes note of what became of a write.
func (h *hub) answered(err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !unanswered(err):
		h.pause, h.until = 0, time.Time{}
	case !now.Before(h.until): // not one of several at once
		h.pause = min(max(2*h.pause, firstRest), lastRest)
		h.until = now.Add(h.pause)
	}
}

// rest is for how long the hub is not to be asked, 0 if it may be.
func (h *hub) rest(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.until.Sub(now))
}

func (h *hub) rests(now time.Time) bool { return h.rest(now) > 0 }

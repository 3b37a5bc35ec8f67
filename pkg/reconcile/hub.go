package reconcile

import (
	"sync"
	"time"
)

// hubRest is how long a hub that does not answer is left alone.
const hubRest = 3 * time.Second

// hub is what is known of how the hub answers. While it does not, the objects are
// healed from what is known, and what there is to store waits: a pass that waited
// for the hub would hold up the next repair. One write at a time tries.
type hub struct {
	mu     sync.Mutex
	silent bool
	until  time.Time
}

// answered takes note of what became of a write.
func (h *hub) answered(err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent, h.until = unanswered(err), now.Add(hubRest)
}

// rest is for how long the hub is not to be written to, 0 if it may be: while it is
// silent, whoever is told so is to try, and the others wait for what becomes of it.
func (h *hub) rest(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.silent {
		return 0
	}
	if left := h.until.Sub(now); left > 0 {
		return left
	}
	h.until = now.Add(hubRest)
	return 0
}

func (h *hub) rests(now time.Time) bool { return h.rest(now) > 0 }

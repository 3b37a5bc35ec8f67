package telemetry

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Of the drifts of an Application that are dealt with, so many Events are written in a
	// second, and so many more after a time without.
	eventsOfOne, eventsOfOneAtOnce = 1, 50
	// Of those of all Applications, so many are written in a second, and at once after a
	// time without; the others wait, for so long at most.
	eventsOfAll, eventsOfAllAtOnce = 5, 5
	longestEventWait               = 20 * time.Second
	// manyPaces is with how many Applications those are forgotten that were quiet.
	manyPaces = 1000
)

// pace bounds how many Events are written, and when. An Event costs the API server what a
// repair does: in a storm of drifts they would be most of the load, and those that are
// written at once are in the way of the repairs.
type pace struct {
	mu  sync.Mutex
	all *rate.Limiter
	of  map[types.NamespacedName]*rate.Limiter
}

func newPace() *pace {
	return &pace{all: rate.NewLimiter(eventsOfAll, eventsOfAllAtOnce), of: map[types.NamespacedName]*rate.Limiter{}}
}

// reserve reports whether one more Event of the Application may be written, and after
// which time, and counts it as written.
func (p *pace) reserve(app types.NamespacedName, now time.Time) (long time.Duration, may bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	place := p.all.ReserveN(now, 1)
	if long = place.DelayFrom(now); long > longestEventWait {
		place.CancelAt(now)
		return 0, false // in a storm nothing is forgotten
	}
	own := p.of[app]
	if own == nil {
		if len(p.of) >= manyPaces {
			p.forgetLocked(now)
		}
		own = rate.NewLimiter(eventsOfOne, eventsOfOneAtOnce)
		p.of[app] = own
	}
	if !own.AllowN(now, 1) {
		place.CancelAt(now)
		return 0, false
	}
	return long, true
}

// forgetLocked forgets the limiters that are full, as new ones are.
func (p *pace) forgetLocked(now time.Time) {
	for app, own := range p.of {
		if own.TokensAt(now) >= eventsOfOneAtOnce {
			delete(p.of, app)
		}
	}
}

package telemetry

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// The rate and the burst of Events about the drifts of one Application, in Events per
	// second.
	eventsOfOne, eventsOfOneAtOnce = 1, 50
	// The rate and the burst of Events of all Applications. Further ones wait for at most
	// this time.
	eventsOfAll, eventsOfAllAtOnce = 5, 5
	longestEventWait               = 20 * time.Second
	// manyPaces is the number of Applications above which quiet ones are forgotten.
	manyPaces = 1000
)

// pace bounds how many Events are written, and when. An Event costs the API server as
// much as a repair. In a storm of drifts, Events would be most of the load, and would
// delay the repairs.
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

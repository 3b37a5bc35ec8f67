package agent

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Of drifts that are dealt with, so many Events are written in a second, and so many
	// more at once: of each Application, and of all together.
	eventsOfOne, eventsOfOneAtOnce = 1, 50
	eventsOfAll, eventsOfAllAtOnce = 10, 100
	// manyPaces is with how many Applications those are forgotten that were quiet.
	manyPaces = 1000
)

// pace bounds how many Events are written. An Event costs the API server what a repair
// does: in a storm of drifts they would be most of the load.
type pace struct {
	mu  sync.Mutex
	all *rate.Limiter
	of  map[types.NamespacedName]*rate.Limiter
}

func newPace() *pace {
	return &pace{all: rate.NewLimiter(eventsOfAll, eventsOfAllAtOnce), of: map[types.NamespacedName]*rate.Limiter{}}
}

// may tells if one more Event of the Application may be written, and counts it as written.
func (p *pace) may(app types.NamespacedName, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all.TokensAt(now) < 1 {
		return false // in a storm nobody looks for what is to be forgotten
	}
	own := p.of[app]
	if own == nil {
		if len(p.of) >= manyPaces {
			p.forgetLocked(now)
		}
		own = rate.NewLimiter(eventsOfOne, eventsOfOneAtOnce)
		p.of[app] = own
	}
	return own.AllowN(now, 1) && p.all.AllowN(now, 1)
}

// forgetLocked forgets those of which a new one would be the same.
func (p *pace) forgetLocked(now time.Time) {
	for app, own := range p.of {
		if own.TokensAt(now) >= eventsOfOneAtOnce {
			delete(p.of, app)
		}
	}
}

package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/pkg/observer"
)

// observePhase records the results of the observers. If one object cannot be watched, only that
// object has a problem. If no object can be watched, the target does not answer: that reports
// nothing about the Application.
type observePhase struct {
	observers    Observers
	statusWriter statusWriter
}

func (s observePhase) run(ctx context.Context, p *pass) (progress, error) {
	observed := s.observers.Observe(p.app.NamespacedName, p.targets())
	if len(observed) > 0 && !slices.ContainsFunc(observed, func(o observer.Observation) bool { return !apierror.IsUnanswered(o.Err) }) {
		return endWith(0), s.statusWriter.loseTarget(ctx, p.early(), p.memory, observed[0].Err)
	}
	synced := true
	for _, o := range p.objects {
		if err := o.plan.Unserved; err != nil {
			o.observed.Err = err
			o.fail(err)
			continue
		}
		if !o.isWatched() {
			o.recall()
			continue
		}
		o.observe(observed[0])
		synced = synced && !errors.Is(observed[0].Err, observer.ErrNotSynced)
		observed = observed[1:]
	}
	if !synced {
		return endWith(0), nil // an event follows when the objects are known
	}
	p.memory.silentSince = time.Time{}
	p.isObserved = true
	return goOn(), nil
}

package reconcile

import (
	"context"
	"errors"

	"github.com/krake-observer/krake-observer/internal/apierror"
)

// permitPhase finds the objects that the account of the Application may not get. The agent reads as
// itself, and the status shows values. Such an object is neither observed nor written.
type permitPhase struct {
	clusters     Clusters
	statusWriter statusWriter
}

func (s permitPhase) run(ctx context.Context, p *pass) (progress, error) {
	if p.target.account == (Account{}) {
		return goOn(), nil
	}
	for _, o := range p.objects {
		if o.plan.Unserved != nil {
			continue
		}
		err := s.clusters.MayRead(ctx, p.target.account, o.plan.Ref)
		switch {
		case apierror.IsUnanswered(err):
			return endWith(0), s.statusWriter.loseTarget(ctx, p.early(), p.memory, err)
		case errors.Is(err, ErrUnreadable), errors.Is(err, ErrNoAccount):
			o.plan.Unserved = err
		case err != nil:
			return endWith(0), err
		}
	}
	return goOn(), nil
}

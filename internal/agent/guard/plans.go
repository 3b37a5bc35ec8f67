package guard

import (
	"context"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

const (
	// maxPlans is the number of Applications whose plan is kept, and maxPlan the bytes of such a plan. The
	// loop has plans of its own.
	maxPlans = 32
	maxPlan  = 128 << 10
	// planningAtOnce bounds the plans that are computed at once, because to read 256 KiB can take 50 MiB.
	planningAtOnce = 1
)

// plans computes what an Application wants, and keeps the latest plans.
type plans struct {
	lately   *lru.Cache
	planning *semaphore.Weighted
}

func newPlans() plans { return plans{lru.New(maxPlans), semaphore.NewWeighted(planningAtOnce)} }

// find returns the object of an Application at a place on the target, and whether there is one. home is
// the namespace there for the Application's own.
func (p plans) find(ctx context.Context, app *application.Application, at manifest.Ref, home string, typesOf plan.TypesOf) (plan.Object, bool, error) {
	current, err := p.of(ctx, app)
	if err != nil {
		return plan.Object{}, false, err
	}
	return current.Find(app, at, home, typesOf)
}

func (p plans) of(ctx context.Context, app *application.Application) (*plan.Cache, error) {
	if kept := p.kept(app.UID); kept.IsOf(app) {
		return kept, nil
	}
	if err := p.planning.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer p.planning.Release(1)
	current, err := p.kept(app.UID).Of(app) // another request may have computed it meanwhile
	if err != nil {
		return nil, err
	}
	if current.Pack() <= maxPlan {
		p.lately.Add(app.UID, current)
	}
	return current, nil
}

// kept returns the plan of an Application that was kept, nil if there is none.
func (p plans) kept(app types.UID) *plan.Cache {
	found, _ := p.lately.Get(app)
	kept, _ := found.(*plan.Cache)
	return kept
}

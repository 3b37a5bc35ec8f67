package reconcile

import (
	"context"

	"github.com/krake-observer/krake-observer/pkg/status"
)

// awaitPhase waits for an Application to shut down on the clusters where it was, before
// anything is created here: it may run only once.
type awaitPhase struct{ conclusion conclusion }

func (a awaitPhase) run(ctx context.Context, p *pass) (progress, error) {
	if !p.app.Spec.Hooks.Shutdown || len(p.app.Inventory) > 0 || len(p.app.Elsewhere) == 0 {
		return goOn(), nil
	}
	app := draftOf(p.unarrived())
	app.Spec.Fetched, app.Mangled = "", nil // what is stored is the other agent's
	status.AwaitFormer(app, a.conclusion.residence.cluster, a.conclusion.hub.now())
	return endWith(0), a.conclusion.hub.update(ctx, app, p.memory)
}

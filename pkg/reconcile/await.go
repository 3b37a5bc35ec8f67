package reconcile

import (
	"context"

	"github.com/krake-observer/krake-observer/internal/status"
)

// awaitPhase waits until the Application has shut down on its former clusters, before the agent
// creates anything here. Such an Application must run only once.
type awaitPhase struct{ statusWriter statusWriter }

func (a awaitPhase) run(ctx context.Context, p *pass) (progress, error) {
	if !p.app.Spec.Hooks.Shutdown || len(p.app.Inventory) > 0 || len(p.app.Elsewhere) == 0 {
		return goOn(), nil
	}
	app := draftOf(p.unarrived())
	app.Spec.Fetched, app.Mangled = "", nil // the stored ones are the other agent's
	status.AwaitFormer(app, a.statusWriter.placement.cluster, a.statusWriter.hub.now())
	return endWith(0), a.statusWriter.hub.update(ctx, app, p.memory)
}

package reconcile

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// awaitPhase waits for an Application to shut down on the clusters where it was, before
// anything is created here: it may run only once.
type awaitPhase struct{ conclusion conclusion }

func (a awaitPhase) run(ctx context.Context, p *pass) (progress, error) {
	if !awaitsFormer(p.app) {
		return goOn(), nil
	}
	app := draftOf(p.unarrived())
	app.Spec.Fetched, app.Mangled = "", nil // what is stored is the other agent's
	status.AwaitFormer(app, a.conclusion.residence.cluster, a.conclusion.hub.now())
	return endWith(ctrl.Result{}), a.conclusion.hub.update(ctx, app, p.memory)
}

func awaitsFormer(app *application.Application) bool {
	return app.Spec.Hooks.Shutdown && len(app.Inventory) == 0 && len(app.Elsewhere) > 0
}

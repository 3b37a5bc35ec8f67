package reconcile

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// completePhase deletes an Application whose work is done.
type completePhase struct{ completion completion }

func (c completePhase) run(ctx context.Context, p *pass) (progress, error) {
	if !p.app.Hooks.Completed {
		return goOn(), nil
	}
	return endWith(ctrl.Result{}), c.completion.complete(ctx, p.app)
}

// completion deletes Applications that have said that their work is done.
type completion struct {
	hub    hub
	report func(*application.Application, status.Outcome)
}

// complete deletes the Application with all that it holds, and does not ask it to shut down
// first.
func (c completion) complete(ctx context.Context, app *application.Application) error {
	if !app.Hooks.Completed && len(app.Inventory) > 0 {
		app.Hooks.Completed = true
		if err := c.hub.store(ctx, app); err != nil {
			return err
		}
	}
	if app.Deleted {
		return nil
	}
	if err := c.hub.applications.Delete(ctx, app); err != nil {
		return err
	}
	c.report(app, status.Outcome{Action: status.Completed, Object: itself(app)})
	return nil
}

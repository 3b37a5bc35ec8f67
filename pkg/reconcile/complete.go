package reconcile

import (
	"context"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// completePhase deletes an Application that reported the end of its work.
type completePhase struct {
	hub    hub
	report func(*application.Application, status.Outcome)
}

func (c completePhase) run(ctx context.Context, p *pass) (progress, error) {
	if !p.app.Hooks.Completed {
		return goOn(), nil
	}
	return endWith(0), c.complete(ctx, p.app)
}

// complete deletes the Application with its inventory, without a shutdown first.
func (c completePhase) complete(ctx context.Context, app *application.Application) error {
	if !app.Hooks.Completed && len(app.Inventory) > 0 {
		app.Hooks.Completed = true
		if err := c.hub.update(ctx, app, nil); err != nil {
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

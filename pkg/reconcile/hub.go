package reconcile

import (
	"context"
	"time"

	"github.com/krake-observer/krake-observer/pkg/apierror"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/pacing"
)

// hub writes Applications where they are stored, and knows whether the hub answers.
type hub struct {
	applications Applications
	outage       *pacing.Outage
	now          func() time.Time
}

// store writes the Application.
func (h hub) store(ctx context.Context, app *application.Application) error {
	err := h.applications.Update(ctx, app)
	h.outage.Record(apierror.IsUnanswered(err), h.now())
	return err
}

// update writes the Application, and with it what was pending: recalled once more, that
// would replace something newer.
func (h hub) update(ctx context.Context, app *application.Application, known *memory) error {
	if err := h.store(ctx, app); err != nil {
		return err
	}
	known.clearPending()
	return nil
}

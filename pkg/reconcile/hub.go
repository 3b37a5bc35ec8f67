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

// update writes the Application, and with it what was pending: recalled once more, that
// would replace something newer. A caller that does not write what was pending has no memory.
func (h hub) update(ctx context.Context, app *application.Application, known *memory) error {
	err := h.applications.Update(ctx, app)
	h.outage.Record(apierror.IsUnanswered(err), h.now())
	if err == nil && known != nil {
		known.pending.Store(nil)
	}
	return err
}

package reconcile

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// hub writes Applications to the hub, and knows whether the hub answers.
type hub struct {
	applications Applications
	outage       *pacing.Outage
	now          func() time.Time
	failing      func(*application.Application, metav1.Condition)
}

// update writes the Application, which includes the pending status. It then clears the pending
// status, which would later replace a newer one. A caller that does not write the pending status
// passes no memory.
func (h hub) update(ctx context.Context, app *application.Application, known *memory) error {
	err := h.applications.Update(ctx, app)
	h.outage.Record(apierror.IsUnanswered(err), h.now())
	if err == nil && known != nil {
		known.pending.Store(nil)
		h.tell(app, known)
	}
	return err
}

// tell reports what is stored now, if the Application has begun to fail, fails for another reason,
// or no longer fails.
func (h hub) tell(app *application.Application, known *memory) {
	if h.failing == nil || !app.IsCurrent() || app.Status.ClusterName() != app.Holder {
		return // the status is that of another agent
	}
	failure, ok := status.FailureOf(app.Status.Conditions)
	if ok && failure.Reason != known.failure {
		known.failure = failure.Reason
		h.failing(app, failure)
	}
}

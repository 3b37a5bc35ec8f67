package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// record writes what is known now (step 7). Nothing is written if it is what is
// stored already.
func (p *pass) record(ctx context.Context, acted error) error {
	app := p.app
	app.LastApplied, app.LastObserved, app.Learned = []map[string]any{}, nil, nil
	for i := range p.planned {
		planned := &p.planned[i]
		app.LastApplied = append(app.LastApplied, planned.desired)
		if learned := planned.learned(); learned != nil {
			app.Learned = append(app.Learned, learned)
		}
		if projection := p.observed[i].Projection; projection != nil {
			app.LastObserved = append(app.LastObserved, withoutMarks(projection))
		}
	}
	app.Inventory = slices.Concat(idsOf(p.planned), p.kept)
	p.setCondition(app, acted)
	return p.Applications.Update(ctx, app)
}

// setCondition sets state and condition Ready to the result of a pass.
func (r *Reconciler) setCondition(app *application.Application, result error) {
	ready := metav1.Condition{
		Type: application.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Reconciled",
		Message:            "all objects are as the Application says",
		LastTransitionTime: metav1.NewTime(r.Now()),
	}
	app.Status.State = application.StateRunning
	if result != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, reason(result), explain(result)
		app.Status.State = application.StateFailed
	}
	app.Status.ObservedSpec = app.Spec.Digest()
	meta.SetStatusCondition(&app.Status.Conditions, ready)
}

func reason(err error) string {
	switch {
	case errors.Is(err, errRefused):
		return "Refused"
	case errors.Is(err, errConflict):
		return "Conflict"
	case errors.Is(err, errIneffective):
		return "RepairIneffective"
	case meta.IsNoMatchError(err):
		return "KindNotFound"
	case apierrors.IsForbidden(err):
		return "Forbidden"
	case apierrors.IsInvalid(err):
		return "Invalid"
	}
	return "Error"
}

// unanswered tells if an error is that of a connection, or of an API server that
// cannot answer now.
func unanswered(err error) bool {
	var connection net.Error
	return errors.As(err, &connection) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

// scrubbed is an error whose text is safe to log.
type scrubbed struct{ error }

func (s scrubbed) Error() string { return explain(s.error) }
func (s scrubbed) Unwrap() error { return s.error }

// maxMessage bounds the text of a condition.
const maxMessage = 1024

// explain gives the text of an error without what the API server's answer may
// repeat of the object: of its causes, only the fields are told.
func explain(err error) string {
	text := describe(err)
	if len(text) > maxMessage {
		return text[:maxMessage] + "..."
	}
	return text
}

func describe(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var texts string
		for _, part := range joined.Unwrap() {
			if texts != "" {
				texts += "; "
			}
			texts += describe(part)
		}
		return texts
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	answer := status.Status()
	if answer.Details == nil {
		return string(answer.Reason)
	}
	text := fmt.Sprintf("%s: %s %s", answer.Reason, answer.Details.Kind, answer.Details.Name)
	for _, cause := range answer.Details.Causes {
		text += fmt.Sprintf("; %s at %s", cause.Type, cause.Field)
	}
	return text
}

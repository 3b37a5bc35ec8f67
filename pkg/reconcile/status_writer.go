package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// silence is how long a target may stay silent before the status reports it. A restart of an API
// server does not justify a write to each Application.
const silence = 10 * time.Second

// statusWriter writes the status of an Application, and of a pass that ends early.
type statusWriter struct {
	hub       hub
	placement placement
}

// conclude sets conditions and state of a working copy.
func (c statusWriter) conclude(app *application.Application, found status.Findings) {
	status.Conclude(app, app.Spec.Digest(), found, c.hub.now())
	if c.move(app) && app.Status.State != application.StateFailed {
		app.Status.State = application.StateMigrating
	}
}

// move sets the condition of a move, and reports whether the move is incomplete.
func (c statusWriter) move(app *application.Application) (incomplete bool) {
	return status.Move(app, c.placement.identityFor(app), c.hub.now())
}

// fail records one verdict on the whole Application. The objects are still those of the former
// spec.
func (c statusWriter) fail(ctx context.Context, app *application.Application, known *memory, found status.Verdict) error {
	spec := app.Status.ObservedSpec
	c.conclude(app, status.Findings{Verdicts: []status.Verdict{found}})
	app.Status.ObservedSpec = spec
	if found.Reason == status.NotFetched {
		status.AwaitSource(&app.Status, c.hub.now())
	}
	return c.hub.update(ctx, app, known)
}

// refuse records why the agent does not carry out an Application. Only another spec can change
// that. It returns an error that is not plan.ErrRefused.
func (c statusWriter) refuse(ctx context.Context, app *application.Application, known *memory, cause error) error {
	if !errors.Is(cause, plan.ErrRefused) {
		return cause
	}
	reason := status.Refused
	if errors.Is(cause, plan.ErrUntranslatable) {
		reason = status.InvalidTosca
	}
	// The status is about this spec from here on, but the objects do not match it.
	app.Status.Objects = slices.Clone(app.Status.Objects)
	for i := range app.Status.Objects {
		app.Status.Objects[i].Reason, app.Status.Objects[i].Message, app.Status.Objects[i].Fields = reason, "", nil
	}
	c.conclude(app, status.Findings{Verdicts: []status.Verdict{{Reason: reason, Message: apierror.Explain(cause)}}})
	return c.hub.update(ctx, app, known)
}

// loseTarget returns an error, so that the queue tries again. If the target has been silent for
// long enough, loseTarget records that first.
func (c statusWriter) loseTarget(ctx context.Context, app *application.Application, known *memory, why error) error {
	now := c.hub.now()
	if known.silentSince.IsZero() {
		known.silentSince = now
	}
	if now.Sub(known.silentSince) < silence || c.hub.outage.Reserve(now) > 0 {
		return why
	}
	return errors.Join(why, c.recordLoss(ctx, app, known))
}

// recordLoss records that the target does not answer.
func (c statusWriter) recordLoss(ctx context.Context, app *application.Application, known *memory) error {
	status.LoseTarget(&app.Status, c.placement.cluster, app.Deleted, c.hub.now())
	c.move(app)
	return c.hub.update(ctx, app, known)
}

// suspend records that the agent does not look at the objects.
func (c statusWriter) suspend(ctx context.Context, app *application.Application, known *memory) error {
	status.Suspend(&app.Status, c.hub.now())
	c.move(app)
	return c.hub.update(ctx, app, known)
}

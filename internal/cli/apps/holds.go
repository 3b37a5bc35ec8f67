package apps

import (
	"context"
	"time"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// MostHold is how long an agent holds an object without --max-hold. This program does not know
// that flag of the agent.
const MostHold = 4 * time.Hour

// ReadHolds finds the holds of a status that are in force. The status has them until they
// expire, even if they were removed, and only the object has the annotation. Objects that
// the user may not read stay undecided.
func ReadHolds(ctx context.Context, e *env.Environment, items []Item) {
	for i := range items {
		items[i].Holds = HoldsOf(ctx, e, items[i])
	}
}

// HoldsOf returns the objects that could be read, with whether they are held.
func HoldsOf(ctx context.Context, e *env.Environment, i Item) map[manifest.ID]bool {
	found := map[manifest.ID]bool{}
	if i.App == nil {
		return found
	}
	now := e.Now()
	for _, object := range i.App.Status.Objects {
		if !mayBeHeld(i.App, object, now) {
			continue
		}
		clients, err := e.ObjectsOf(i.App.Cluster)
		if err != nil {
			return found // nothing of this cluster can be read
		}
		if live, err := clients.Live(ctx, lens.Placed(i.App, object.ID)); err == nil {
			settings := i.App.Wishes
			settings.HoldUntil = time.Time{} // that of the whole Application
			until, _ := pacing.HeldUntil(settings, object.Hold, env.AnnotationsOf(live)[application.HoldUntilAnnotation], MostHold, now)
			found[object.ID] = until.After(now)
		}
	}
	return found
}

// mayBeHeld reports whether a hold of the status counts, provided its annotation still exists.
func mayBeHeld(app *application.Application, object application.ObjectStatus, now time.Time) bool {
	return object.Hold != nil && object.Hold.Until.After(now) && !app.Wishes.DenyHolds
}

// HeldUntil returns until when an object is held by its own annotation, and whether that is
// certain: by the object, or by its agent, which does not repair it.
func (i Item) HeldUntil(object application.ObjectStatus, now time.Time) (until time.Time, sure bool) {
	holds, looked := i.Holds[object.ID]
	if !mayBeHeld(i.App, object, now) || looked && !holds {
		return time.Time{}, true
	}
	return object.Hold.Until.Time, looked || object.Reason == status.Held
}

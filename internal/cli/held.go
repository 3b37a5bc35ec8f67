package cli

import (
	"context"
	"time"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// mostHold is how long an agent holds an object without --max-hold. This program does not know
// that flag of the agent.
const mostHold = 4 * time.Hour

// readHolds finds the holds of a status that are in force. The status has them until they
// expire, even if they were removed, and only the object has the annotation. Objects that
// the user may not read stay undecided.
func readHolds(ctx context.Context, e *environment, items []item) {
	for i := range items {
		items[i].holds = holdsOf(ctx, e, items[i])
	}
}

// holdsOf returns the objects that could be read, with whether they are held.
func holdsOf(ctx context.Context, e *environment, i item) map[manifest.ID]bool {
	found := map[manifest.ID]bool{}
	if i.app == nil {
		return found
	}
	now := e.now()
	for _, object := range i.app.Status.Objects {
		if !mayBeHeld(i.app, object, now) {
			continue
		}
		clients, err := e.objectsOf(i.app.Cluster)
		if err != nil {
			return found // nothing of this cluster can be read
		}
		if live, err := clients.live(ctx, lens.Placed(i.app, object.ID)); err == nil {
			wishes := i.app.Wishes
			wishes.HoldUntil = time.Time{} // that of the whole Application
			until, _ := pacing.HeldUntil(wishes, object.Hold, annotationsOf(live)[application.HoldUntilAnnotation], mostHold, now)
			found[object.ID] = until.After(now)
		}
	}
	return found
}

// mayBeHeld reports whether a hold of the status counts, provided its annotation still exists.
func mayBeHeld(app *application.Application, object application.ObjectStatus, now time.Time) bool {
	return object.Hold != nil && object.Hold.Until.After(now) && !app.Wishes.DenyHolds
}

// heldUntil returns until when an object is held by its own annotation, and whether that is
// certain: by the object, or by its agent, which does not repair it.
func (i item) heldUntil(object application.ObjectStatus, now time.Time) (until time.Time, sure bool) {
	holds, looked := i.holds[object.ID]
	if !mayBeHeld(i.app, object, now) || looked && !holds {
		return time.Time{}, true
	}
	return object.Hold.Until.Time, looked || object.Reason == status.Held
}

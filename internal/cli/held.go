package cli

import (
	"context"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/pacing"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// lookAtHolds finds out which of the holds that a status remembers are in force: it
// remembers them for as long as they count, also when somebody has taken them off, and
// the annotation is on the object alone. What the user may not read is left open.
func (e *environment) lookAtHolds(ctx context.Context, items []item) {
	for i := range items {
		items[i].holds = e.holdsOf(ctx, items[i])
	}
}

// holdsOf gives the objects that could be read, with whether they are held.
func (e *environment) holdsOf(ctx context.Context, i item) map[manifest.ID]bool {
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
			return found // of this cluster nothing can be read
		}
		if live, err := clients.live(ctx, placed(i.app, object.ID)); err == nil {
			found[object.ID] = isHeldBy(i.app, object.Hold, live, now)
		}
	}
	return found
}

// isHeldBy tells if the annotation of an object counts, nil if there is none.
func isHeldBy(app *application.Application, former *application.Hold, live map[string]any, now time.Time) bool {
	ofObject := app.Wishes
	ofObject.HoldUntil = time.Time{}
	until, _ := pacing.HeldUntil(ofObject, former, annotationsOf(live)[application.HoldUntilAnnotation], mostHold, now)
	return until.After(now)
}

// mayBeHeld tells of an object whose annotation counts, if it is still there.
func mayBeHeld(app *application.Application, object application.ObjectStatus, now time.Time) bool {
	return object.Hold != nil && object.Hold.Until.After(now) && !app.Wishes.DenyHolds
}

// heldUntil gives until when an object is held by an annotation of its own, and if that
// is sure: by the object, or else by its agent, which leaves it as it is.
func (i item) heldUntil(object application.ObjectStatus, now time.Time) (until time.Time, sure bool) {
	holds, looked := i.holds[object.ID]
	if !mayBeHeld(i.app, object, now) || looked && !holds {
		return time.Time{}, true
	}
	return object.Hold.Until.Time, looked || object.Reason == status.Held
}

// annotationsOf gives those of an object, nil if there are none.
func annotationsOf(live map[string]any) map[string]string {
	metadata, _ := live["metadata"].(map[string]any)
	stored, _ := metadata["annotations"].(map[string]any)
	annotations := make(map[string]string, len(stored))
	for name, value := range stored {
		annotations[name], _ = value.(string)
	}
	return annotations
}

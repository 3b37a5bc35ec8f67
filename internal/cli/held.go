package cli

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/pacing"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// mostHold is how long an agent holds an object without --max-hold. That flag is not known here.
const mostHold = 4 * time.Hour

// lookAtHolds finds out which of the holds that a status remembers are in force: it
// remembers them for as long as they count, also when they were taken off, and the
// annotation is on the object alone. What the user may not read is left open.
func (e *environment) lookAtHolds(ctx context.Context, items []item) {
	for i := range items {
		items[i].holds = e.holdsOf(ctx, items[i])
	}
}

// holdsOf returns the objects that could be read, with whether they are held.
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
			wishes := i.app.Wishes
			wishes.HoldUntil = time.Time{} // that of the whole Application
			until, _ := pacing.HeldUntil(wishes, object.Hold, annotationsOf(live)[application.HoldUntilAnnotation], mostHold, now)
			found[object.ID] = until.After(now)
		}
	}
	return found
}

// mayBeHeld reports whether a remembered hold counts, if its annotation is still there.
func mayBeHeld(app *application.Application, object application.ObjectStatus, now time.Time) bool {
	return object.Hold != nil && object.Hold.Until.After(now) && !app.Wishes.DenyHolds
}

// heldUntil returns until when an object is held by an annotation of its own, and whether that
// is sure: by the object, or else by its agent, which does not repair it.
func (i item) heldUntil(object application.ObjectStatus, now time.Time) (until time.Time, sure bool) {
	holds, looked := i.holds[object.ID]
	if !mayBeHeld(i.app, object, now) || looked && !holds {
		return time.Time{}, true
	}
	return object.Hold.Until.Time, looked || object.Reason == status.Held
}

// annotationsOf returns those of a live object, none if there is no object.
func annotationsOf(live map[string]any) map[string]string {
	return (&unstructured.Unstructured{Object: live}).GetAnnotations()
}

package reconcile

import (
	"slices"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// draftOf returns a working copy of an Application. Lists and maps in it are replaced, never
// changed, but for the conditions, which are its own.
func draftOf(stored *application.Application) *application.Application {
	draft := *stored
	draft.Status.Conditions = slices.Clone(stored.Status.Conditions)
	return &draft
}

// stayingOf returns a working copy of an Application that stays: it is asked anew once it is
// to go. What it has said of its work counts for as long as it has the hook.
func stayingOf(stored *application.Application) *application.Application {
	app := draftOf(stored)
	app.Hooks.Shutdown = nil
	app.Hooks.Completed = app.Hooks.Completed && app.Spec.Hooks.Complete
	return app
}

// early returns the working copy as a pass writes it that ends before the objects are
// known: documents of another agent stay what they are.
func (p *pass) early() *application.Application {
	if !p.isArriving {
		return p.app
	}
	app := *p.app
	app.Learned, app.LastObserved, app.Status.Cluster = p.stored.Learned, p.stored.LastObserved, p.stored.Status.Cluster
	return &app
}

// unarrived returns the working copy with documents and status as they are stored, for a
// write that does not change them.
func (p *pass) unarrived() *application.Application {
	app := *p.app
	if p.isArriving {
		app.Learned, app.LastObserved, app.Status = p.stored.Learned, p.stored.LastObserved, p.stored.Status
	}
	return &app
}

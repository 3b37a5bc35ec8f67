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

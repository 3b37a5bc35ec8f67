package reconcile

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// finalizer removes an Application from this cluster: after its shutdown, the objects of its
// inventory are deleted or released. app is the working copy.
type finalizer struct {
	app       *application.Application
	memory    *memory
	hub       hub
	placement placement
	remover   remover
	shutdown  shutdown
	mayBegin  func() bool
}

// moved is the work of the agent of a former cluster. It waits until the objects exist on the new
// cluster, and then removes those here. An Application with the shutdown hook is never in two
// places: the other agent waits for this one. The user who moved the Application has authorized the
// removal. The status of the other agent only decides when.
func (f finalizer) moved(ctx context.Context) (ctrl.Result, error) {
	app := f.app
	if damaged := app.Damaged[application.InventoryKey(app.Holder)]; damaged != nil {
		return ctrl.Result{}, fmt.Errorf("leave cluster %s: %w", app.Holder, damaged)
	}
	if f.isMovedHere() {
		app.Inventory = f.placement.apart(app)
	}
	switch {
	case len(app.Inventory) == 0:
		app.Finalized = false
		return ctrl.Result{}, f.hub.update(ctx, app, f.memory)
	case app.Deleted:
	case app.Settings.Mode != application.Enforce:
		return ctrl.Result{}, nil
	case !app.IsReady() && !isToShutDown(app):
		return ctrl.Result{}, nil
	}
	return f.remove(ctx)
}

// remove removes the objects of the inventory after the shutdown, the last created object first. When all
// objects are gone, the Application can go too. Only the agent of the present cluster has a status to report in.
func (f finalizer) remove(ctx context.Context) (ctrl.Result, error) {
	if f.app.Deleted {
		f.memory.deleted = f.app
	}
	if f.waits() {
		return ctrl.Result{}, nil
	}
	if waits, result, err := f.shutdown.run(ctx); waits || err != nil {
		return result, err
	}
	remaining, failure := f.remover.removeHeld(ctx)
	patience, verdicts := holdRemaining(f.app, remaining)
	if f.app.IsCurrent() {
		status.Delete(&f.app.Status, verdicts, f.hub.now())
		failure = UserFacing(failure)
	}
	if err := f.hub.update(ctx, f.app, f.memory); err != nil || failure != nil || !f.app.Finalized {
		return ctrl.Result{}, errors.Join(failure, err)
	}
	return ctrl.Result{RequeueAfter: patience}, nil
}

// waits reports that the removal of the objects cannot begin now. A shutdown that has begun goes on: its deadline
// would pass.
func (f finalizer) waits() bool {
	record := f.app.Hooks.Shutdown
	return (record == nil || record.State != application.StateWaiting) && !f.mayBegin()
}

// isMovedHere reports whether the Application was moved to this same target under another name.
func (f finalizer) isMovedHere() bool {
	app := f.app
	return !app.Deleted && app.Settings.Mode == application.Enforce && app.IsReady() && f.placement.isHere(app.Status.Target)
}

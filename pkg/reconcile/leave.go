package reconcile

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// departure removes an Application from this cluster: after its shutdown, the objects of its
// inventory are deleted or released. app is the working copy.
type departure struct {
	app       *application.Application
	memory    *memory
	hub       hub
	residence residence
	remover   remover
	shutdown  shutdown
	mayBegin  func() bool
}

// delete removes the inventory of a deleted Application, the last created object first. When all
// objects are gone, the Application can go too.
func (d departure) delete(ctx context.Context) (ctrl.Result, error) {
	d.memory.deleted = d.app
	if d.waits() {
		return ctrl.Result{}, nil
	}
	if waits, result, err := d.shutdown.run(ctx); waits || err != nil {
		return result, err
	}
	remaining, failure := d.remover.removeHeld(ctx)
	patience, verdicts := holdRemaining(d.app, remaining)
	status.Delete(&d.app.Status, verdicts, d.hub.now())
	failure = Stated(failure)
	if err := d.hub.update(ctx, d.app, d.memory); err != nil {
		return ctrl.Result{}, errors.Join(failure, err)
	}
	if failure == nil && d.app.Finalized {
		return ctrl.Result{RequeueAfter: patience}, nil
	}
	return ctrl.Result{}, failure
}

// leave is the work of the agent of a former cluster. It waits until the objects exist on the new
// cluster, and then removes those here. An Application with the shutdown hook is never in two
// places: the other agent waits for this one. The user who moved the Application has authorized the
// removal. The status of the other agent only decides when.
func (d departure) leave(ctx context.Context) (ctrl.Result, error) {
	app := d.app
	if damaged := app.Damaged[application.InventoryKey(app.Holder)]; damaged != nil {
		return ctrl.Result{}, fmt.Errorf("leave cluster %s: %w", app.Holder, damaged)
	}
	if d.isMovedHere() {
		app.Inventory = d.residence.apart(app)
	}
	switch {
	case len(app.Inventory) == 0:
		app.Finalized = false
		return ctrl.Result{}, d.hub.update(ctx, app, d.memory)
	case app.Deleted:
	case app.Wishes.Mode != application.Enforce:
		return ctrl.Result{}, nil
	case !app.IsReady() && !isToShutDown(app):
		return ctrl.Result{}, nil
	}
	if app.Deleted {
		d.memory.deleted = app
	}
	if d.waits() {
		return ctrl.Result{}, nil
	}
	if waits, result, err := d.shutdown.run(ctx); waits || err != nil {
		return result, err
	}
	remaining, failure := d.remover.removeHeld(ctx)
	patience, _ := holdRemaining(app, remaining)
	if err := d.hub.update(ctx, app, d.memory); err != nil || failure != nil || !app.Finalized {
		return ctrl.Result{}, errors.Join(failure, err)
	}
	return ctrl.Result{RequeueAfter: patience}, nil
}

// waits reports that the removal of the objects cannot begin now. A shutdown that has begun goes on: its deadline
// would pass.
func (d departure) waits() bool {
	record := d.app.Hooks.Shutdown
	return (record == nil || record.State != application.StateWaiting) && !d.mayBegin()
}

// isMovedHere reports whether the Application was moved to this same target under another name.
func (d departure) isMovedHere() bool {
	app := d.app
	return !app.Deleted && app.Wishes.Mode == application.Enforce && app.IsReady() && d.residence.isHere(app.Status.Target)
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// origin is what the documents of an Application say that are not ours.
type origin struct {
	learned  []map[string]any
	observed application.Published
	status   application.Status
}

// arrive takes over an Application of which another agent has written the
// documents; nil tells that they are ours. What another API server has assigned is
// nothing to want here, and what another agent says nothing to go by: it may not be
// what it should be. The documents stay as they are stored until our own take their
// place: whoever begins anew needs them.
func (r *Reconciler) arrive(app *application.Application, known *memory) *origin {
	here := app.Status.ClusterName() == r.ClusterName
	if here && (app.Vouched || known.recorded) {
		return nil
	}
	from := &origin{app.Learned, app.LastObserved, app.Status}
	delete(app.Damaged, application.LearnedKey)
	app.Learned, app.LastObserved = nil, application.Published{}
	if !here {
		app.Status = application.Status{}.On(r.ClusterName)
	}
	return from
}

// undo leaves the documents what they were, whatever the conditions say.
func (o *origin) undo(app *application.Application) {
	if o != nil {
		app.Learned, app.LastObserved, app.Status.Cluster = o.learned, o.observed, o.status.Cluster
	}
}

// around writes an Application that has not arrived yet: its documents and its
// status are what they were.
func (o *origin) around(app *application.Application, write func() error) error {
	if o == nil {
		return write()
	}
	arrived := origin{app.Learned, app.LastObserved, app.Status}
	app.Learned, app.LastObserved, app.Status = o.learned, o.observed, o.status
	err := write()
	app.Learned, app.LastObserved, app.Status = arrived.learned, arrived.observed, arrived.status
	return err
}

// leave is what the agent of a former cluster does: nothing, until the objects are
// where they belong, and then it deletes those that it has. An Application that wants
// to shut down first is never in two places: the other agent waits for this one. Of
// what the Application says of itself it goes by where it is to be; the status of the
// other agent only says when: also that it could carry the Application out, and waits.
func (r *Reconciler) leave(ctx context.Context, app *application.Application) (ctrl.Result, error) {
	r.Observers.Stop(app.NamespacedName)
	r.memories.leave(app) // of what happens from now on, nothing is seen
	if damaged := app.Damaged[application.InventoryKey(app.Holder)]; damaged != nil {
		return ctrl.Result{}, fmt.Errorf("leave cluster %s: %w", app.Holder, damaged)
	}
	if r.hasHandedOverHere(app) {
		app.Inventory = r.apart(app)
	}
	switch {
	case len(app.Inventory) == 0:
		return ctrl.Result{}, r.left(ctx, app)
	case app.Deleted:
	case app.Wishes.Mode != application.Enforce:
		return ctrl.Result{}, nil
	case !app.HandedOver() && !isToShutDown(app):
		return ctrl.Result{}, nil
	}
	if waits, result, err := r.shutDown(ctx, app); waits || err != nil {
		return result, err
	}
	remaining, failure := r.deleteHeld(ctx, app)
	patience, _ := stay(app, remaining)
	if app.Deleted {
		r.memories.of(app).leaving = app
	}
	if err := r.left(ctx, app); err != nil || failure != nil || !app.Finalized {
		return ctrl.Result{}, errors.Join(failure, err)
	}
	return ctrl.Result{RequeueAfter: patience}, nil
}

// hasHandedOverHere tells if an Application was moved to this very target.
func (r *Reconciler) hasHandedOverHere(app *application.Application) bool {
	return !app.Deleted && app.Wishes.Mode == application.Enforce && app.HandedOver() && r.isHere(app.Status.Target)
}

// isHere tells if a target is this one, by another name: to delete there what a
// former cluster has would be to delete it where it was moved to.
func (r *Reconciler) isHere(target types.UID) bool {
	uid, _, _ := strings.Cut(string(target), ofNamespace)
	return r.Target != nil && uid != "" && uid == string(r.Target())
}

// apart gives what an Application holds that is not where it was moved to, though that
// is the same target: its agent has the objects in another namespace.
func (r *Reconciler) apart(app *application.Application) []manifest.ID {
	here := r.Namespaces.Of(app.Namespace)
	_, there, mapped := strings.Cut(string(app.Status.Target), ofNamespace)
	if !mapped {
		there = app.Namespace
	}
	return slices.DeleteFunc(slices.Clone(app.Inventory), func(id manifest.ID) bool { return here == there || id.Namespace != here })
}

// ofNamespace stands in a target between its UID and the namespace where the objects
// are, if that has another name than the Application's.
const ofNamespace = "/"

// targetOf identifies where the objects of an Application are, whatever it is called.
func (r *Reconciler) targetOf(app *application.Application) types.UID {
	target := r.Target()
	if namespace := r.Namespaces.Of(app.Namespace); target != "" && namespace != app.Namespace {
		target += types.UID(ofNamespace + namespace)
	}
	return target
}

// left stores what a former cluster still has, and lets the Application go if that
// is nothing.
func (r *Reconciler) left(ctx context.Context, app *application.Application) error {
	app.Finalized = len(app.Inventory) > 0
	return r.store(ctx, app)
}

// moving says where a move stands, for as long as another cluster has objects, and
// tells if they are not all here yet.
func (r *Reconciler) moving(app *application.Application) bool {
	status := &app.Status
	status.Awaiting = ""
	if len(app.OtherHolders) == 0 {
		meta.RemoveStatusCondition(&status.Conditions, application.MigratingCondition)
		status.Target = ""
		return false
	}
	others := strings.Join(app.OtherHolders, ", ")
	moving := metav1.Condition{Status: metav1.ConditionTrue, Reason: "Creating", Message: "the objects are being created; those of the former cluster stay until then: " + others}
	ready := meta.IsStatusConditionTrue(status.Conditions, application.ReadyCondition)
	waiting, state := awaiting(app)
	switch {
	case app.Spec.Hooks.Shutdown && state == application.StateDegraded:
		moving = waiting
	case ready:
		moving.Reason, moving.Message = "LeavingFormerCluster", "all objects are here; those of the former cluster are being deleted by its agent: "+others
	case meta.IsStatusConditionTrue(status.Conditions, application.ReconciledCondition):
		moving.Reason, moving.Message = "WaitingForHealth", "all objects are here, and not all are healthy; those of the former cluster stay until then: "+others
	}
	if r.Target != nil {
		status.Target = r.targetOf(app)
	}
	r.set(app, application.MigratingCondition, moving)
	return !ready
}

// abandoned tells what is left of an Application that is gone, though its objects
// are not: somebody has given up on them.
func (r *Reconciler) abandoned(name types.NamespacedName) {
	app := r.memories.leavingOf(name)
	if app == nil {
		return
	}
	for _, id := range app.Inventory {
		r.Report(app, Outcome{Action: Abandoned, Object: id})
	}
}

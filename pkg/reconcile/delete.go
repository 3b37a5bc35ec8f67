package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// How long to wait for an object that is held by somebody's finalizer: longer,
// the longer it has lasted.
const (
	leastPatience = 2 * time.Second
	mostPatience  = time.Minute
)

// held is an object that is to go, and is not gone.
type held struct {
	id manifest.ID
	// why names what holds it, empty if that is not known.
	why string
	// patience is when to look again, 0 for never.
	patience time.Duration
	// err is why it could not be deleted.
	err error
}

// verdict is what there is to say of it: nothing, while it is on its way.
func (h held) verdict() verdict {
	switch {
	case h.err != nil:
		return verdict{object: h.id, reason: reasonOf(h.err), message: told(h.err)}
	case h.why != "":
		return verdict{object: h.id, reason: reasonDeletionBlocked, message: h.why}
	}
	return verdict{object: h.id}
}

// unlooked are objects that nothing is done about.
func unlooked(ids []manifest.ID) []held {
	kept := make([]held, 0, len(ids))
	for _, id := range ids {
		kept = append(kept, held{id: id})
	}
	return kept
}

// delete deletes what the Application holds, or lets go of it, last created
// first, and lets the Application go when all of it is gone.
func (r *Reconciler) delete(ctx context.Context, app *application.Application) (ctrl.Result, error) {
	r.Observers.Stop(app.NamespacedName)
	if !app.Finalized {
		r.memories.forget(app.NamespacedName)
		return ctrl.Result{}, nil
	}
	r.memories.of(app).leaving = app
	if waits, result, err := r.shutDown(ctx, app); waits || err != nil {
		return result, err
	}
	remaining, failure := r.deleteHeld(ctx, app)
	patience := r.deleting(app, remaining)
	if err := r.update(ctx, app); err != nil {
		return ctrl.Result{}, errors.Join(failure, err)
	}
	if failure == nil && app.Finalized {
		return ctrl.Result{RequeueAfter: patience}, nil
	}
	return ctrl.Result{}, failure
}

// deleting takes note of what is left, and says when to look again.
func (r *Reconciler) deleting(app *application.Application, remaining []held) (patience time.Duration) {
	patience, verdicts := stay(app, remaining)
	f := findings{verdicts: verdicts}
	app.Finalized = len(remaining) > 0
	r.set(app, application.StalledCondition, isTrue(reasonDeletionBlocked, withReason(f.verdicts, reasonDeletionBlocked), reasonProgressing))
	ready := metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonDeleting, Message: "the Application is being deleted"}
	if reason, _ := gravest(f.verdicts); reason != "" {
		ready = reconciledOf(f)
	}
	r.set(app, application.ReadyCondition, r.set(app, application.ReconciledCondition, ready))
	app.Status.State = application.StateDeleting
	return patience
}

// stay has the Application hold what is left, and gives when to look again, and what
// there is to say of it.
func stay(app *application.Application, remaining []held) (patience time.Duration, verdicts []verdict) {
	patience, app.Inventory = mostPatience, nil
	for _, object := range remaining {
		app.Inventory = append(app.Inventory, object.id)
		patience = min(patience, object.patience)
		verdicts = append(verdicts, object.verdict())
	}
	return patience, verdicts
}

// deleteHeld deletes all that the Application holds, last created first, and gives
// what is left in the order of creation.
func (r *Reconciler) deleteHeld(ctx context.Context, app *application.Application) (remaining []held, err error) {
	ids := inOrder(app.Inventory)
	slices.Reverse(ids)
	remaining, err = r.deleteAll(ctx, app, r.actorFor(app), ids)
	slices.Reverse(remaining)
	return remaining, err
}

// deleteAll deletes objects of the Application, one after the other, or lets go of
// them, and gives those that are not gone yet. One that fails does not hold up the
// others, unless the target does not answer at all: each of them would be waited for.
// Objects of a kind that is gone are gone with it.
func (r *Reconciler) deleteAll(ctx context.Context, app *application.Application, target Cluster, ids []manifest.ID) (kept []held, err error) {
	var failures []error
	for i, id := range ids {
		if i > 0 && unconnected(failures[i-1]) {
			kept = append(kept, unlooked(ids[i:])...)
			break
		}
		left, err := r.deleteOne(ctx, app, target, id)
		if left != nil {
			kept = append(kept, *left)
		}
		failures = append(failures, err)
	}
	return kept, errors.Join(failures...)
}

func (r *Reconciler) deleteOne(ctx context.Context, app *application.Application, target Cluster, id manifest.ID) (*held, error) {
	object, err := r.Kinds.Locate(app.NamespacedName, id)
	if meta.IsNoMatchError(err) {
		object, err = r.Kinds.Locate(app.NamespacedName, inAnyVersion(id))
	}
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		err = fmt.Errorf("find the resource of %s: %w", id, err)
		return &held{id: id, patience: mostPatience, err: err}, err
	}
	ref := object.Ref
	ref.ID = id
	if object.ClusterScoped {
		ref.Namespace = ""
	}
	do := r.remove
	if letsGo(app, id) {
		do = r.orphan
	}
	left, err := do(ctx, app, target, ref, application.Marks(app.NamespacedName, app.UID, id))
	switch {
	case errors.Is(err, errForeign):
		return nil, nil // not ours
	case err != nil:
		return &held{id: id, patience: mostPatience, err: err}, err
	}
	return left, nil
}

// letsGo tells of objects that stay where they are when they are not wanted any
// more: what was adopted, unless it is said that it is to be deleted, and all of an
// Application that is deleted with that policy.
func letsGo(app *application.Application, id manifest.ID) bool {
	return app.Deleted && app.Wishes.DeletionPolicy == application.Orphan ||
		isAdopted(id, app.Adopted) && !app.Wishes.DeletesAdopted
}

func (r *Reconciler) remove(ctx context.Context, app *application.Application, target Cluster, object manifest.Ref, marks manifest.Marks) (*held, error) {
	left, err := target.Delete(ctx, object, func(live map[string]any) error { return prove(marks, object.ID, live) })
	switch {
	case err != nil:
		return nil, err
	case left != nil:
		return r.blocked(object.ID, left), nil
	}
	r.Report(app, Outcome{Action: Deleted, Object: object.ID})
	return nil, nil
}

// orphan takes our marks off an object and leaves it where it is.
func (r *Reconciler) orphan(ctx context.Context, app *application.Application, target Cluster, object manifest.Ref, marks manifest.Marks) (*held, error) {
	_, err := target.Patch(ctx, object, nil, func(live map[string]any) (schema.Patch, error) {
		if err := prove(marks, object.ID, live); err != nil {
			return nil, err
		}
		return unmark(marks, live), nil
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	r.Report(app, Outcome{Action: Orphaned, Object: object.ID})
	return nil, nil
}

// unmark removes our marks, and nothing else.
func unmark(marks manifest.Marks, live map[string]any) schema.Patch {
	metadata, _ := live["metadata"].(map[string]any)
	var patch schema.Patch
	remove := func(place string, ours map[string]string) {
		values, _ := metadata[place].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			if _, ok := values[name]; ok {
				path := schema.Path{{Field: "metadata", Index: -1}, {Field: place, Index: -1}, {Field: name, Index: -1}}
				patch = append(patch, schema.Operation{Op: "remove", Path: path.Pointer()})
			}
		}
	}
	remove("labels", marks.Labels)
	remove("annotations", marks.Annotations)
	return patch
}

// inAnyVersion names the same object where the version that it was created by is
// not served any more.
func inAnyVersion(id manifest.ID) manifest.ID {
	if group := id.GroupVersionKind().Group; group != "" {
		id.APIVersion = group + "/"
	}
	return id
}

// blocked names what keeps an object that is being deleted.
func (r *Reconciler) blocked(id manifest.ID, live map[string]any) *held {
	object := unstructured.Unstructured{Object: live}
	waited := time.Duration(0)
	if since := object.GetDeletionTimestamp(); since != nil {
		waited = r.Now().Sub(since.Time)
	}
	kept := &held{id: id, patience: min(max(waited/4, leastPatience), mostPatience)}
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		kept.why = "it is being deleted, and kept by its finalizers " + strings.Join(finalizers, ", ")
	}
	return kept
}

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// The wait for an object with a finalizer grows with the age of the deletion.
const (
	leastPatience = 2 * time.Second
	mostPatience  = time.Minute
)

// leavingObject is an object that has to go and still exists. Its verdict has no reason while the
// deletion proceeds.
type leavingObject struct {
	status.Verdict

	// patience is the time until the next look, 0 for never.
	patience time.Duration
}

// untouched returns objects that the loop leaves alone in this pass.
func untouched(ids []manifest.ID) []leavingObject {
	objects := make([]leavingObject, 0, len(ids))
	for _, id := range ids {
		objects = append(objects, leavingObject{Verdict: status.Verdict{Object: id}})
	}
	return objects
}

// notRemoved returns an object that could not be removed, with the error.
func notRemoved(id manifest.ID, err error) (*leavingObject, error) {
	reason := reasonOf(err)
	return &leavingObject{status.Verdict{Object: id, Reason: reason, Message: status.Explain(reason, err)}, mostPatience}, err
}

// holdRemaining sets the inventory to the remaining objects. It returns when to look again, and
// their verdicts.
func holdRemaining(app *application.Application, remaining []leavingObject) (patience time.Duration, verdicts []status.Verdict) {
	patience, app.Inventory = mostPatience, nil
	for _, object := range remaining {
		app.Inventory = append(app.Inventory, object.Object)
		patience = min(patience, object.patience)
		verdicts = append(verdicts, object.Verdict)
	}
	app.Finalized = len(app.Inventory) > 0
	return patience, verdicts
}

// remover deletes or releases objects of one Application.
type remover struct {
	app    *application.Application
	target Cluster
	kinds  Kinds
	report func(*application.Application, status.Outcome)
	now    func() time.Time
}

// removeHeld removes all objects of the inventory, the last created first. It returns the remaining
// ones in the order of creation.
func (r remover) removeHeld(ctx context.Context) (remaining []leavingObject, err error) {
	ids := plan.InOrder(r.app.Inventory)
	slices.Reverse(ids)
	remaining, err = r.removeAll(ctx, ids)
	slices.Reverse(remaining)
	return remaining, err
}

// removeAll removes objects one after the other, and returns those that still exist. A failure for
// one object does not delay the others. If the target does not answer at all, removeAll stops,
// because each request would wait for an answer. Objects of a kind that no longer exists are gone
// with it.
func (r remover) removeAll(ctx context.Context, ids []manifest.ID) (remaining []leavingObject, err error) {
	var failures []error
	for i, id := range ids {
		if i > 0 && apierror.IsUnconnected(failures[i-1]) {
			remaining = append(remaining, untouched(ids[i:])...)
			break
		}
		object, err := r.removeOne(ctx, id)
		if object != nil {
			remaining = append(remaining, *object)
		}
		failures = append(failures, err)
	}
	return remaining, errors.Join(failures...)
}

func (r remover) removeOne(ctx context.Context, id manifest.ID) (*leavingObject, error) {
	object, err := r.kinds.Locate(r.app.NamespacedName, id)
	if meta.IsNoMatchError(err) { // no longer served in the version of its creation
		object, err = r.kinds.Locate(r.app.NamespacedName, inAnyVersion(id))
	}
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return notRemoved(id, fmt.Errorf("cannot find the resource of %s: %w", id, err))
	}
	ref := object.Ref
	ref.ID = id
	if object.ClusterScoped {
		ref.Namespace = ""
	}
	remove := r.delete
	if plan.IsReleased(r.app, id) {
		remove = r.release
	}
	remaining, err := remove(ctx, ref, application.Marks(r.app.NamespacedName, r.app.UID, id))
	switch {
	case errors.Is(err, errForeign):
		return nil, nil // not ours
	case err != nil:
		return notRemoved(id, err)
	}
	return remaining, nil
}

func (r remover) delete(ctx context.Context, object manifest.Ref, marks manifest.Marks) (*leavingObject, error) {
	remaining, err := r.target.Delete(ctx, object, func(live map[string]any) error { return prove(marks, object.ID, live) })
	switch {
	case err != nil:
		return nil, err
	case remaining != nil:
		return r.blocked(object.ID, remaining), nil
	}
	r.report(r.app, status.Outcome{Action: status.Deleted, Object: object.ID})
	return nil, nil
}

// release removes our marks from an object, and leaves the object in place.
func (r remover) release(ctx context.Context, object manifest.Ref, marks manifest.Marks) (*leavingObject, error) {
	_, err := r.target.Patch(ctx, object, nil, func(live map[string]any) (schema.Patch, error) {
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
	r.report(r.app, status.Outcome{Action: status.Orphaned, Object: object.ID})
	return nil, nil
}

// unmark returns the patch that removes our marks, and nothing else.
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

// inAnyVersion returns the object's identity without the version.
func inAnyVersion(id manifest.ID) manifest.ID {
	if group := id.GroupVersionKind().Group; group != "" {
		id.APIVersion = group + "/"
	}
	return id
}

// blocked returns the verdict on an object whose deletion is not complete.
func (r remover) blocked(id manifest.ID, live map[string]any) *leavingObject {
	object := unstructured.Unstructured{Object: live}
	waited := time.Duration(0)
	if since := object.GetDeletionTimestamp(); since != nil {
		waited = r.now().Sub(since.Time)
	}
	remaining := &leavingObject{status.Verdict{Object: id}, min(max(waited/4, leastPatience), mostPatience)}
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		remaining.Reason = status.DeletionBlocked
		remaining.Message = "its deletion waits for its finalizers " + strings.Join(finalizers, ", ") +
			": the programs that set them remove them; if one no longer runs, remove its finalizer (kubectl edit)"
	}
	return remaining
}

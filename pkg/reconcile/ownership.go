package reconcile

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// ownership finds out whether a live object belongs to an Application.
type ownership struct {
	app types.NamespacedName
	// applications has the Applications that may own it; nil: any that its marks name exists.
	applications Applications
	// adopts: an object that belongs to no Application is taken over.
	adopts bool
}

// check returns an error if the object is not ours. It is ours if its annotations prove it;
// if they name us with the UID of a former Application of our name, as a restored backup
// does; or if it is the object that proved to be ours before and has lost its annotation.
// isUnmarked reports whether our marks have to be put on it.
func (w ownership) check(ctx context.Context, o *object, live map[string]any) (isUnmarked bool, err error) {
	named, isMarked := application.OwnerOf(live)
	switch {
	case o.plan.Marks().Prove(live), isMarked && named == w.app:
		return false, nil
	case o.isProved(live):
		return true, nil
	case isMarked && w.exists(ctx, named):
		return false, fmt.Errorf("%w: %s", ownedError{named.String()}, o.plan.ID)
	case !w.adopts:
		return false, fmt.Errorf("%w: %s", errForeign, o.plan.ID)
	}
	return true, nil
}

// exists reports whether an Application is there to own anything. One of another format
// version, or that cannot be read, is.
func (w ownership) exists(ctx context.Context, name types.NamespacedName) bool {
	if w.applications == nil {
		return true
	}
	app, err := w.applications.Get(ctx, name)
	return err != nil || app != nil
}

// prove returns errForeign for a live object that is not ours.
func prove(marks manifest.Marks, id manifest.ID, live map[string]any) error {
	if !marks.Prove(live) {
		return fmt.Errorf("%w: %s", errForeign, id)
	}
	return nil
}

package reconcile

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// ownership decides whether a live object belongs to an Application.
type ownership struct {
	app types.NamespacedName
	// applications reads the Application that may own the object. If nil, any Application that the
	// marks name counts as existing.
	applications Applications
	// adopts reports that the loop adopts an object that belongs to no Application.
	adopts bool
}

// check returns an error if the object is not ours. An object is ours in three cases. Its
// annotations prove it. They name us with the UID of a former Application of our name, as in a
// restored backup. Or it proved to be ours before, and then lost its annotation. isUnmarked reports
// whether our marks have to be written to it.
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

// exists reports whether an Application exists that may own objects. One of another format version,
// or an unreadable one, counts as existing.
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

package reconcile

import (
	"time"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// leavingObject is an object that is to go, and is not gone.
type leavingObject struct {
	id manifest.ID
	// why names what keeps it, empty if that is not known.
	why string
	// patience is when to look again, 0 for never.
	patience time.Duration
	// err is why it could not be deleted.
	err error
}

// verdict is without a reason while the object is on its way.
func (o leavingObject) verdict() status.Verdict {
	switch {
	case o.err != nil:
		reason := reasonOf(o.err)
		return status.Verdict{Object: o.id, Reason: reason, Message: status.Explain(reason, o.err)}
	case o.why != "":
		return status.Verdict{Object: o.id, Reason: status.DeletionBlocked, Message: o.why}
	}
	return status.Verdict{Object: o.id}
}

// untouched are objects that the loop does nothing about now.
func untouched(ids []manifest.ID) []leavingObject {
	objects := make([]leavingObject, 0, len(ids))
	for _, id := range ids {
		objects = append(objects, leavingObject{id: id})
	}
	return objects
}

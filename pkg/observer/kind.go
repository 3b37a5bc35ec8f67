package observer

import (
	"time"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// kind is one kind of resource that is observed, in one scope.
type kind struct {
	scope

	// id is the type of its objects, without a name.
	id manifest.ID
	// users counts the views of objects of this kind.
	users int
	// err is why the objects of the kind are not known: ErrNotSynced at first, later perhaps
	// the answer of the API server to the list.
	err error

	// current is the informer whose objects are known, nil before the first has
	// listed them, and while the kind is not served.
	current *informer
	// next takes the place of current as soon as it is synced.
	next *informer
	// again starts an informer of a kind that was not served at failedAt.
	again    *time.Timer
	failedAt time.Time
	// due is when to compare a list with what is known.
	due time.Time
	// begins starts the first informer, at latest then; nil: it has begun.
	begins *time.Timer
	latest time.Time
}

func (k *kind) stop() {
	for _, running := range []*informer{k.current, k.next} {
		if running != nil {
			running.stop()
		}
	}
	k.current, k.next = nil, nil
	if k.again != nil {
		k.again.Stop()
		k.again = nil
	}
	if k.begins != nil {
		k.begins.Stop()
	}
}

package observer

import (
	"context"
	"time"
	"unique"

	"k8s.io/client-go/tools/cache"

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
	// starts starts the first informer, at latest then, or another one of a kind that was not
	// served at failedAt; nil: none is to be started.
	starts   *time.Timer
	latest   time.Time
	failedAt time.Time
	// due is when to compare a list with what is known.
	due time.Time
}

func (k *kind) stop() {
	for _, running := range []*informer{k.current, k.next} {
		if running != nil {
			running.stop()
		}
	}
	k.current, k.next = nil, nil
	if k.starts != nil {
		k.starts.Stop()
		k.starts = nil
	}
}

// informer is one run of an informer: after it was stopped another is needed.
type informer struct {
	cache.SharedIndexInformer

	stop    context.CancelFunc
	started time.Time
	// failed: a list or a watch of it was answered by an error.
	failed bool
}

// record returns what is stored of an object, or nil.
func (i *informer) record(at key) *record {
	if i == nil {
		return nil
	}
	name := cache.NewObjectName(at.namespace, at.name).String()
	object, exists, err := i.GetStore().GetByKey(name)
	if err != nil || !exists {
		return nil
	}
	found, _ := object.(*record)
	return found
}

// records returns what is stored of all objects.
func (i *informer) records() []*record {
	if i == nil {
		return nil
	}
	return recordsOf(i.GetStore().List())
}

// byOwner is the index of an informer's objects by the owner that they name.
const byOwner = "owner"

func indexByOwner(object any) ([]string, error) {
	found, ok := object.(*record)
	if !ok || found.owner == (unique.Handle[Owner]{}) {
		return nil, nil
	}
	return []string{found.owner.Value().String()}, nil
}

// ownedBy returns the objects that name the owner.
func (i *informer) ownedBy(name Owner) []*record {
	if i == nil {
		return nil
	}
	objects, err := i.GetIndexer().ByIndex(byOwner, name.String())
	if err != nil {
		return nil // only of an informer without this index
	}
	return recordsOf(objects)
}

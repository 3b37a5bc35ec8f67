package observer

import (
	"context"
	"time"
	"unique"

	"k8s.io/client-go/tools/cache"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// kind is one observed kind of resource, in one scope.
type kind struct {
	scope

	// id is the type of its objects, without a name.
	id manifest.ID
	// users counts the views of objects of this kind.
	users int
	// err is the reason why the objects of the kind are not known: ErrNotSynced at first, later
	// perhaps the API server's answer to the list.
	err error

	// current is the informer whose objects are known. It is nil before the first list is complete,
	// and while the kind is not served.
	current *informer
	// next replaces current once it is synced.
	next *informer
	// starts is the timer that starts the first informer, or the next one for a kind that was not
	// served at failedAt. It is nil if none has to be started.
	starts *time.Timer
	// latest and anyway are when requests and Options.Crowded delay the first list no longer.
	latest, anyway time.Time
	failedAt       time.Time
	// due is the time of the next comparison with a list.
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

// informer is one run of an informer. A stopped one cannot run again.
type informer struct {
	cache.SharedIndexInformer

	stop    context.CancelFunc
	started time.Time
	// failed reports that a list or watch of the informer had an error.
	failed bool
}

// record returns the record of an object, or nil.
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

// records returns the records of all objects.
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

package observer

import (
	"context"
	"time"
	"unique"

	"k8s.io/client-go/tools/cache"

	"github.com/krake-observer/krake-observer/pkg/resync"
)

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

func (i *informer) versions() resync.Versions {
	known := resync.Versions{}
	for _, found := range i.records() {
		known[found.namespacedName()] = resync.Version{UID: found.uid, ResourceVersion: found.version}
	}
	return known
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

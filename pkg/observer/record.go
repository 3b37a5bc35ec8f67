package observer

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// record is what an informer stores of an object: its identity and its summary. On the way from the
// transform to the handler, it also has each owner's observation of the whole object. It is small,
// because there is one for each object that matches the selector.
type record struct {
	namespace, name string
	uid             types.UID
	version         string
	// owner is the owner that the object names, or the zero handle.
	owner   unique.Handle[Owner]
	summary any
	views   []seenBy
}

// seenBy is one owner's observation of an object.
type seenBy struct {
	Observation

	owner    Owner
	revision string
}

// GetObjectMeta, GetObjectKind and DeepCopyObject allow an informer to store a record.
func (r *record) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.namespace, Name: r.name, UID: r.uid, ResourceVersion: r.version}
}

// GetObjectKind returns no kind: an informer has objects of one kind.
func (r *record) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject shares the observations, which do not change.
func (r *record) DeepCopyObject() runtime.Object {
	copied := *r
	return &copied
}

func (r *record) key(resource schema.GroupVersionResource) key {
	return key{resource, r.namespace, r.name}
}

// stale is the observation for an owner whose target was not compared with the object.
func (r *record) stale() Observation {
	return Observation{UID: r.uid, ResourceVersion: r.version, Summary: r.summary, Stale: true}
}

// recordsOf returns the records in an informer's store.
func recordsOf(objects []any) []*record {
	records := make([]*record, 0, len(objects))
	for _, object := range objects {
		if found, ok := object.(*record); ok {
			records = append(records, found)
		}
	}
	return records
}

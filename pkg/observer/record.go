package observer

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// record is what an informer stores of an object: its identity, its summary, and, on the way
// from the transform to the handler, what each owner saw while the whole object was at hand.
// It is small, because there is one for each object that the selector matches.
type record struct {
	namespace, name string
	uid             types.UID
	version         string
	// owner is the one that the object names; the zero handle: none.
	owner   unique.Handle[Owner]
	summary any
	views   []seenBy
}

// seenBy is how one owner saw an object.
type seenBy struct {
	Observation

	owner    Owner
	revision string
}

func newRecord(live *unstructured.Unstructured) *record {
	return &record{
		namespace: live.GetNamespace(), name: live.GetName(), uid: live.GetUID(), version: live.GetResourceVersion(),
	}
}

// GetObjectMeta, GetObjectKind and DeepCopyObject make a record what informers store.
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

// stale is the observation of an owner for whom the object was not inspected.
func (r *record) stale() Observation {
	return Observation{UID: r.uid, ResourceVersion: r.version, Summary: r.summary, Stale: true}
}

// recordsOf returns the records among what an informer stores.
func recordsOf(objects []any) []*record {
	records := make([]*record, 0, len(objects))
	for _, object := range objects {
		if found, ok := object.(*record); ok {
			records = append(records, found)
		}
	}
	return records
}

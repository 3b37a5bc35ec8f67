package observer

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// record is what an informer keeps of an object: its identity, what it says
// beyond its fields, and, on the way from the transform to the handler, what each
// owner saw when the whole object was at hand. There is one for each object of
// the cluster that is anybody's, so it is small.
type record struct {
	namespace, name string
	uid             types.UID
	version         string
	// owner is whom the object says it belongs to; the zero handle: nobody.
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

// GetObjectKind tells nothing: an informer has objects of one kind.
func (r *record) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject shares the observations, which nobody changes.
func (r *record) DeepCopyObject() runtime.Object {
	copied := *r
	return &copied
}

func (r *record) key(resource schema.GroupVersionResource) key {
	return key{resource, r.namespace, r.name}
}

// stale is what is known of the object by those who have not looked at it.
func (r *record) stale() Observation {
	return Observation{UID: r.uid, ResourceVersion: r.version, Summary: r.summary, Stale: true}
}

// recordsOf gives the records among what an informer stores.
func recordsOf(objects []any) []*record {
	records := make([]*record, 0, len(objects))
	for _, object := range objects {
		if found, ok := object.(*record); ok {
			records = append(records, found)
		}
	}
	return records
}

package observer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// source makes records of objects from the API server.
type source struct {
	options  *Options
	registry *registry
}

// newInformer makes an informer of objects, of which the transform makes records.
func (s *source) newInformer(of scope) cache.SharedIndexInformer {
	return dynamicinformer.NewFilteredDynamicInformer(s.options.Client, of.resource, of.namespace, 0, cache.Indexers{byOwner: indexByOwner},
		func(options *metav1.ListOptions) { options.LabelSelector = s.options.Selector }).Informer()
}

// transform is the informer's transform: the last function with the whole object.
func (s *source) transform(resource gvr.GroupVersionResource, object any) any {
	live, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object // a tombstone or a record
	}
	return s.registry.inspector.inspect(live, s.registry.viewsOf(resource, live))
}

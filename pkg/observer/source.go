package observer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// source makes records of objects from the API server.
type source struct {
	options  *Options
	registry *registry
}

// newInformer makes an informer of objects, of which the transform makes records.
func (s *source) newInformer(of scope) cache.SharedIndexInformer {
	objects := s.options.Client.Resource(of.resource).Namespace(of.namespace)
	both := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = s.options.Selector
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = s.options.Selector
			return objects.Watch(ctx, options)
		},
	}
	return cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(both, s.options.Client), nil, // objects are records, or not inspected yet
		cache.SharedIndexInformerOptions{Indexers: cache.Indexers{byOwner: indexByOwner}, ObjectDescription: of.resource.String()},
	)
}

// transform is the informer's transform: the last function with the whole object.
func (s *source) transform(resource gvr.GroupVersionResource, object any) any {
	live, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object // a tombstone or a record
	}
	return s.registry.inspector.inspect(s.registry.inspection(resource, live))
}

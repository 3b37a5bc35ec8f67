package observer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// source makes records of objects from the API server.
type source struct {
	options  *Options
	registry *registry
}

// newInformer makes an informer whose watch yields records. If the server does not stream lists, a
// list yields objects, and the transform makes records of them.
func (s *source) newInformer(of scope) cache.SharedIndexInformer {
	objects := s.options.Client.Resource(of.resource).Namespace(of.namespace)
	both := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = s.options.Selector
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = s.options.Selector
			if s.options.Streams == nil {
				return objects.Watch(ctx, options)
			}
			return s.watch(ctx, of, options)
		},
	}
	return cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(both, s.options.Client), nil, // objects are records, or not inspected yet
		cache.SharedIndexInformerOptions{Indexers: cache.Indexers{byOwner: indexByOwner}, ObjectDescription: of.resource.String()},
	)
}

func (s *source) watch(ctx context.Context, of scope, options metav1.ListOptions) (watch.Interface, error) {
	body, err := s.options.Streams(ctx, of.resource, of.namespace, options)
	switch {
	case net.IsProbableEOF(err) || net.IsTimeout(err):
		return watch.NewEmptyWatch(), nil // the informer tries again without a list, as with client-go's watches
	case err != nil:
		return nil, err
	}
	d := newDecoder(s.registry, of.resource)
	return d.json.Watch(body, of.resource, func(text []byte) (runtime.Object, error) { return d.record(text) }), nil
}

// transform is the informer's transform: the last function with the whole object, unless the watch
// has made a record of it.
func (s *source) transform(resource gvr.GroupVersionResource, object any) any {
	live, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object // a tombstone or a record
	}
	return s.registry.inspector.inspect(s.registry.inspection(resource, live.Object), func() Whole { return wholeOf(live.Object) })
}

package observer

import (
	"context"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Streams opens the body of a watch.
type Streams func(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (io.ReadCloser, error)

// NewStreams opens watches as the dynamic client does.
func NewStreams(config *rest.Config) (Streams, error) {
	config = dynamic.ConfigFor(config)
	config.GroupVersion, config.AcceptContentTypes, config.ContentType = nil, runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	server, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (io.ReadCloser, error) {
		options.Watch = true
		return server.Get().AbsPath(pathOf(resource, namespace)...).
			SpecificallyVersionedParams(&options, scheme.ParameterCodec, schema.GroupVersion{Version: "v1"}).Stream(ctx)
	}, nil
}

func pathOf(resource schema.GroupVersionResource, namespace string) []string {
	path := []string{"api", resource.Version}
	if resource.Group != "" {
		path = []string{"apis", resource.Group, resource.Version}
	}
	if namespace != metav1.NamespaceAll {
		path = append(path, "namespaces", namespace)
	}
	return append(path, resource.Resource)
}

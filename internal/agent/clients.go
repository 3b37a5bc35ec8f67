package agent

import (
	"net/http"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/pkg/observer"
)

// target are the clients of the target cluster, all of them behind the fence.
type target struct {
	config    *rest.Config
	objects   dynamic.Interface
	streams   observer.Streams
	discovery discovery.DiscoveryInterface
	// metadata is for what is watched, lists for what is compared: those requests
	// are counted.
	metadata, lists metadata.Interface
}

// newTarget makes the clients of the target. may tells why nothing may be
// written to it now.
func newTarget(config *rest.Config, count func(reason string), may func() error) (target, error) {
	config = right.Fence(config, may)
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return target{}, err
	}
	streams, err := observer.NewStreams(config)
	if err != nil {
		return target{}, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return target{}, err
	}
	watched, err := metadata.NewForConfig(config)
	if err != nil {
		return target{}, err
	}
	lists, err := newLists(config, count)
	return target{config, objects, streams, kinds, watched, lists}, err
}

// newLists makes a client for lists of metadata, which counts them.
func newLists(config *rest.Config, count func(reason string)) (metadata.Interface, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return countedTransport{inner, count, resyncReason} })
	return metadata.NewForConfig(config)
}

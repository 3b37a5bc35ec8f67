package agent

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

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
	config = fenced(config, may)
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
	return metadata.NewForConfig(wrapped(config, func(inner http.RoundTripper) http.RoundTripper {
		return countedTransport{inner, count, resyncReason}
	}))
}

// apart gives a connection apart from that of everything else, for the right to
// act: no list is before a renewal, and a request that is not answered takes its TCP
// connection with it, as over HTTP/2 it does not.
func apart(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	config.QPS, config.RateLimiter = -1, nil // nor is it queued behind our own requests
	return config
}

// identity is who a cluster is, by whatever name and address: the UID of its
// namespace kube-system.
type identity struct {
	namespaces corev1.NamespaceInterface
	known      atomic.Value
}

func newIdentity(config *rest.Config) (*identity, error) {
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &identity{namespaces: client.Namespaces()}, nil
}

// ask asks the cluster.
func (i *identity) ask(ctx context.Context) (types.UID, error) {
	namespace, err := i.namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	i.known.Store(namespace.UID)
	return namespace.UID, nil
}

// uid is what the cluster has said, empty before that: before this replica acts.
func (i *identity) uid() types.UID {
	uid, _ := i.known.Load().(types.UID)
	return uid
}

package agent

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// target are the clients of the target cluster.
type target struct {
	// objects only reads: whatever writes is made of writes, which the Lease guards.
	objects   dynamic.Interface
	writes    *rest.Config
	discovery discovery.DiscoveryInterface
	// metadata is for what is watched, lists for what is compared: those requests
	// are counted.
	metadata, lists metadata.Interface
}

// newTarget makes the clients of the target. may tells why nothing may be
// written to it now.
func newTarget(config *rest.Config, count func(reason string), may func() error) (target, error) {
	objects, err := dynamic.NewForConfig(config)
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
	return target{objects, fenced(config, may), kinds, watched, lists}, err
}

// newLists makes a client for lists of metadata, which counts them.
func newLists(config *rest.Config, count func(reason string)) (metadata.Interface, error) {
	return metadata.NewForConfig(wrapped(config, func(inner http.RoundTripper) http.RoundTripper {
		return countedTransport{inner, count, resyncReason}
	}))
}

// newLeases makes a client for Leases, with a connection of its own: no list is
// before a renewal, and a renewal that is not answered takes its connection with
// it, as HTTP/2 does not.
func newLeases(config *rest.Config) (coordinationv1.LeasesGetter, error) {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	config.QPS, config.RateLimiter = -1, nil // nor is it queued behind our own requests
	return coordinationv1.NewForConfig(config)
}

// uidOf asks a cluster who it is: the UID of its namespace kube-system.
func uidOf(config *rest.Config) (func(context.Context) (types.UID, error), error) {
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (types.UID, error) {
		namespace, err := client.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, err)
		}
		return namespace.UID, nil
	}, nil
}

package right

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Connect makes the right to act of this process, with Leases on target and hub.
// Of the options it sets Identity, Target and Hub.
func Connect(options Options, target, hub *rest.Config) (*Leadership, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	options.Identity = host + "_" + string(uuid.NewUUID())
	if options.Target, err = coordinationv1.NewForConfig(ownConnection(target)); err != nil {
		return nil, err
	}
	if options.Hub, err = coordinationv1.NewForConfig(ownConnection(hub)); err != nil {
		return nil, err
	}
	return New(options), nil
}

// TargetIdentity identifies the target independently of its name and address: by the UID
// of its namespace kube-system.
type TargetIdentity struct {
	namespaces corev1.NamespaceInterface
	known      atomic.Value
}

// NewTargetIdentity makes the identity of a target, which is not known yet.
func NewTargetIdentity(target *rest.Config) (*TargetIdentity, error) {
	client, err := corev1.NewForConfig(ownConnection(target))
	if err != nil {
		return nil, err
	}
	return &TargetIdentity{namespaces: client.Namespaces()}, nil
}

// Ask reads the UID from the cluster.
func (i *TargetIdentity) Ask(ctx context.Context) (types.UID, error) {
	namespace, err := i.namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read namespace %s: %w", metav1.NamespaceSystem, err)
	}
	i.known.Store(namespace.UID)
	return namespace.UID, nil
}

// UID is the last answer of the cluster, empty before that: before this replica acts.
func (i *TargetIdentity) UID() types.UID {
	uid, _ := i.known.Load().(types.UID)
	return uid
}

// ownConnection returns a connection for the Lease alone. No list delays a renewal, and a
// request without an answer closes its TCP connection, which HTTP/2 would keep open.
func ownConnection(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	config.QPS, config.RateLimiter = -1, nil // no queue behind our own requests
	return config
}

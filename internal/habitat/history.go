package habitat

import (
	"context"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/krake-observer/krake-observer/internal/resync"
)

// history is a client for Leases. It notices when the API server has an older version of the Lease than
// before. Then etcd was restored, and the watches of this process report nothing (ADR 024).
type history struct {
	clientv1.LeasesGetter

	// restored is called with the error.
	restored func(error)

	mu     sync.Mutex
	latest string // the version of the last answer
}

// Leases implements [clientv1.LeasesGetter].
func (h *history) Leases(namespace string) clientv1.LeaseInterface {
	return leases{h.LeasesGetter.Leases(namespace), h}
}

// saw records the answer of a request that succeeded.
func (h *history) saw(lease *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	former := h.latest
	h.latest = lease.ResourceVersion
	h.mu.Unlock()
	if err := resync.CheckOrder(former, lease.ResourceVersion); err != nil {
		h.restored(err)
		return nil, err
	}
	return lease, nil
}

// leases has the three requests of an election.
type leases struct {
	clientv1.LeaseInterface

	history *history
}

func (l leases) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.history.saw(l.LeaseInterface.Get(ctx, name, options))
}

func (l leases) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.history.saw(l.LeaseInterface.Create(ctx, lease, options))
}

func (l leases) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.history.saw(l.LeaseInterface.Update(ctx, lease, options))
}

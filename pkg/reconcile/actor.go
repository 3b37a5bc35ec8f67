package reconcile

import (
	"context"
	"fmt"
	"sync"

	"github.com/krake-observer/krake-observer/internal/apply"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// actor is the target, written as one account. It requests the account before the first write. If
// that fails, no other account writes in its place.
type actor struct {
	clusters Clusters
	account  Account

	mu      sync.Mutex
	cluster Cluster // nil: not asked for yet
}

func (a *actor) act(ctx context.Context, do func(Cluster) (map[string]any, error)) (map[string]any, error) {
	cluster, err := a.ask(ctx)
	if err != nil {
		return nil, fmt.Errorf("act as service account %s/%s: %w", a.account.Namespace, a.account.Name, err)
	}
	return do(cluster)
}

func (a *actor) ask(ctx context.Context) (Cluster, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cluster == nil {
		var err error
		if a.cluster, err = a.clusters.As(ctx, a.account); err != nil {
			return nil, err
		}
	}
	return a.cluster, nil
}

// Create implements Cluster.
func (a *actor) Create(ctx context.Context, ref manifest.Ref, object map[string]any) (map[string]any, error) {
	return a.act(ctx, func(cluster Cluster) (map[string]any, error) { return cluster.Create(ctx, ref, object) })
}

// Patch implements Cluster.
func (a *actor) Patch(ctx context.Context, ref manifest.Ref, live map[string]any, repair apply.Repair) (map[string]any, error) {
	return a.act(ctx, func(cluster Cluster) (map[string]any, error) { return cluster.Patch(ctx, ref, live, repair) })
}

// TryPatch implements Cluster.
func (a *actor) TryPatch(ctx context.Context, ref manifest.Ref, patch schema.Patch) error {
	_, err := a.act(ctx, func(cluster Cluster) (map[string]any, error) { return nil, cluster.TryPatch(ctx, ref, patch) })
	return err
}

// Delete implements Cluster.
func (a *actor) Delete(ctx context.Context, ref manifest.Ref, proof apply.Proof) (map[string]any, error) {
	return a.act(ctx, func(cluster Cluster) (map[string]any, error) { return cluster.Delete(ctx, ref, proof) })
}

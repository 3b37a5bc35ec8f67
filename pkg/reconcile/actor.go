package reconcile

import (
	"context"
	"fmt"

	"github.com/krake-observer/krake-observer/pkg/apply"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// actor is the target as one account writes it. It asks for the account when there is
// something to write; no other account writes in its place if that fails.
type actor struct {
	clusters Clusters
	account  Account

	cluster Cluster
}

func (a *actor) act(ctx context.Context, do func(Cluster) (map[string]any, error)) (map[string]any, error) {
	if a.cluster == nil {
		cluster, err := a.clusters.As(ctx, a.account)
		if err != nil {
			return nil, fmt.Errorf("act as service account %s/%s: %w", a.account.Namespace, a.account.Name, err)
		}
		a.cluster = cluster
	}
	return do(a.cluster)
}

// Create implements Cluster.
func (a *actor) Create(ctx context.Context, ref manifest.Ref, object map[string]any) (map[string]any, error) {
	return a.act(ctx, func(cluster Cluster) (map[string]any, error) { return cluster.Create(ctx, ref, object) })
}

// Patch implements Cluster.
func (a *actor) Patch(ctx context.Context, ref manifest.Ref, live map[string]any, repair apply.Repair) (map[string]any, error) {
	return a.act(ctx, func(cluster Cluster) (map[string]any, error) { return cluster.Patch(ctx, ref, live, repair) })
}

// Delete implements Cluster.
func (a *actor) Delete(ctx context.Context, ref manifest.Ref, proof apply.Proof) (map[string]any, error) {
	return a.act(ctx, func(cluster Cluster) (map[string]any, error) { return cluster.Delete(ctx, ref, proof) })
}

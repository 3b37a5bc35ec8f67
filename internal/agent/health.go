package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// applications are those of this cluster, as the cache knows them.
type applications struct {
	// ctx ends with the agent: whoever asks for the metrics brings none.
	ctx    context.Context
	cache  cache.Cache
	synced atomic.Bool
}

// knowApplications has every replica keep the Applications from its start on,
// not only the one that leads: a replica asks for the Lease when it has them, and
// takes over without a list of them.
func knowApplications(ctx context.Context, mgr manager.Manager) (*applications, error) {
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("watch the Applications: %w", err)
	}
	known := &applications{ctx: ctx, cache: mgr.GetCache()}
	return known, mgr.Add(&everywhere{func(ctx context.Context) error {
		known.synced.Store(mgr.GetCache().WaitForCacheSync(ctx))
		return nil
	}})
}

// count counts the Applications by state. As long as they are not known there is
// nothing to tell: not that there are none.
func (a *applications) count() map[application.State]int {
	if !a.synced.Load() {
		return nil
	}
	var list corev1.ConfigMapList
	if err := a.cache.List(a.ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the agent is about to end
	}
	return countStates(list.Items)
}

// addChecks: the process is healthy as long as it answers, and ready once it
// knows the Applications. Neither depends on the API server answering now.
func addChecks(mgr manager.Manager, known *applications) error {
	ready := func(*http.Request) error {
		if !known.synced.Load() {
			return errors.New("the Applications are not known yet")
		}
		return nil
	}
	return errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("applications", ready),
	)
}

// everywhere is a runnable of all replicas, not of the leader only.
type everywhere struct{ manager.RunnableFunc }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// selectorOf selects what has the label, whatever its value.
func selectorOf(label string) (labels.Selector, error) {
	requirement, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	return labels.NewSelector().Add(*requirement), nil
}

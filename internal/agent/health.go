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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// applications are those of which this cluster holds objects, or is to, as the
// cache knows them.
type applications struct {
	// ctx ends with the agent: whoever asks for the metrics brings none.
	ctx     context.Context
	cluster string
	cache   cache.Cache
	synced  atomic.Bool
}

// knowApplications has every replica keep the Applications from its start on,
// not only the one that acts, which takes over without a list of them.
func knowApplications(ctx context.Context, mgr manager.Manager, cluster string) (*applications, error) {
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("watch the Applications: %w", err)
	}
	known := &applications{ctx: ctx, cluster: cluster, cache: mgr.GetCache()}
	return known, mgr.Add(&everywhere{func(ctx context.Context) error {
		known.synced.Store(mgr.GetCache().WaitForCacheSync(ctx))
		return nil
	}})
}

// count counts the Applications by state. As long as they are not known there is
// nothing to tell: not that there are none.
func (a *applications) count() map[application.State]int {
	if found, ok := a.list(); ok {
		return telemetry.CountStates(found, a.cluster)
	}
	return nil
}

// names gives the Applications that are known.
func (a *applications) names() []types.NamespacedName {
	found, _ := a.list()
	names := make([]types.NamespacedName, 0, len(found))
	for i := range found {
		names = append(names, types.NamespacedName{Namespace: found[i].Namespace, Name: found[i].Name})
	}
	return names
}

func (a *applications) list() (found []corev1.ConfigMap, known bool) {
	if !a.synced.Load() {
		return nil, false
	}
	var list corev1.ConfigMapList
	if err := a.cache.List(a.ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, false // the agent is about to end
	}
	return list.Items, true
}

// addChecks: the process is healthy as long as it answers. It is ready once it
// knows the Applications, unless it must not act; that hub or target do not answer
// from then on does not matter.
func addChecks(mgr manager.Manager, known *applications, refusal func() string) error {
	return errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("applications", known.check),
		mgr.AddReadyzCheck("lease", unlessRefused(refusal)),
	)
}

// check implements healthz.Checker.
func (a *applications) check(*http.Request) error {
	if !a.synced.Load() {
		return errors.New("the Applications are not known yet")
	}
	return nil
}

// unlessRefused fails with the reason for which the agent must not act.
func unlessRefused(refusal func() string) healthz.Checker {
	return func(*http.Request) error {
		if why := refusal(); why != "" {
			return errors.New(why)
		}
		return nil
	}
}

// everywhere is a runnable that begins before the controllers do.
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

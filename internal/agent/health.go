package agent

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// addChecks: the process is healthy as long as it answers, and ready once it
// knows the Applications. Neither depends on the API server answering now.
func addChecks(mgr manager.Manager) error {
	var synced atomic.Bool
	err := mgr.Add(&everywhere{func(ctx context.Context) error {
		synced.Store(mgr.GetCache().WaitForCacheSync(ctx))
		return nil
	}})
	if err != nil {
		return err
	}
	ready := func(*http.Request) error {
		if !synced.Load() {
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

package agent

import (
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/krake-observer/krake-observer/internal/agent/hub"
)

// addChecks adds the probes. The process is healthy while it answers. It is ready once it
// knows the Applications, unless it must not act; from then on an unreachable hub or target
// does not matter.
func addChecks(mgr manager.Manager, known *hub.Known, refusal func() string) error {
	return errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("applications", known.Check),
		mgr.AddReadyzCheck("lease", unlessRefused(refusal)),
	)
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

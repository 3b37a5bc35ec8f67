package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// afterPhase waits until the Applications that an Application comes after are ready, before the agent creates or claims anything. An
// Application with recorded objects does not wait, so that the agent always repairs them. A former spec is not stored, so a pass that
// waited with a new one could not repair. The mode observe does not wait either: it creates nothing. A hold only
// delays the repair of drift, and changes nothing here.
type afterPhase struct{ statusWriter statusWriter }

func (a afterPhase) run(ctx context.Context, p *pass) (progress, error) {
	if p.app.Settings.Mode != application.Enforce || len(p.app.Inventory) > 0 {
		return goOn(), nil
	}
	var awaited []string
	for _, name := range p.app.Settings.After {
		why, err := a.unready(ctx, types.NamespacedName{Namespace: p.app.Namespace, Name: name})
		if err != nil {
			return endWith(0), err
		}
		if why != "" {
			awaited = append(awaited, "Application "+name+": "+why)
		}
	}
	if len(awaited) == 0 {
		return goOn(), nil
	}
	found := status.Verdict{Reason: status.Waiting, Message: strings.Join(awaited, "; ")}
	return endWith(0), a.statusWriter.fail(ctx, p.early(), p.memory, found) // a change of an awaited Application wakes this one
}

// unready returns why an Application is not ready on this cluster, or "".
func (a afterPhase) unready(ctx context.Context, name types.NamespacedName) (string, error) {
	app, err := a.statusWriter.hub.applications.Get(ctx, name)
	if errors.Is(err, application.ErrFormat) {
		return "of another format version", nil
	}
	if err != nil {
		return "", err
	}
	return unreadyOn(a.statusWriter.placement.cluster, app), nil
}

// unreadyOn returns why an Application, which may be nil, is not ready on a cluster, or "".
func unreadyOn(cluster string, app *application.Application) string {
	switch {
	case app == nil: // the agent does not see Applications of other clusters
		return "not found on cluster " + cluster
	case app.Cluster != cluster:
		return "on cluster " + app.Cluster
	case app.Deleted:
		return "being deleted"
	case app.NotAdmitted != nil:
		return "not admitted"
	case app.IsReady():
		return ""
	case !app.IsObserved():
		return "its present spec is not carried out yet"
	}
	return fmt.Sprintf("%s (%s)", app.Status.State, readyReason(app))
}

// readyReason returns the reason of the condition Ready.
func readyReason(app *application.Application) string {
	if ready := meta.FindStatusCondition(app.Status.Conditions, application.ReadyCondition); ready != nil {
		return ready.Reason
	}
	return "unknown"
}

package reconcile

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// Reconciler reconciles the Applications of one cluster.
type Reconciler struct {
	// ClusterName is the target cluster. The reconciler ignores Applications of other clusters.
	ClusterName string
	// Scope limits how far an Application may reach.
	Scope        mutate.Scope
	Applications Applications
	Clusters     Clusters
	Observers    Observers
	Kinds        Kinds
	// Target identifies the target independently of its name: the UID of its namespace kube-system.
	// Target is nil if that is not known.
	Target func() types.UID
	// RequireAccount makes the reconciler write everything as a service account of the
	// Application's namespace on the target. Without a name in the Application, that is
	// application.DefaultServiceAccount.
	RequireAccount bool
	// Namespaces decide where the objects of Applications are on the target.
	Namespaces Namespaces
	// Secrets makes the values of the Secrets of hooks. If nil, the reconciler refuses Applications
	// with hooks.
	Secrets Secrets
	// Shutdowns asks Applications to shut down. If nil, none is asked.
	Shutdowns        Shutdowns
	ShutdownDefaults ShutdownDefaults
	// Sources fetches URL sources. If nil, the reconciler refuses Applications with a URL source.
	Sources Sources
	// FieldManager is the agent's own name in managedFields.
	FieldManager string
	// MaxHold bounds a hold on one object, from the first time that the agent sees it.
	MaxHold time.Duration
	// Slots bounds the objects that all passes together write at the same time, beyond one for each
	// pass. If nil, each pass writes one object after the other.
	Slots *semaphore.Weighted
	// MayBegin reports whether a pass may carry out a new spec, or remove the objects of an
	// Application. A spec is new until the status reports it, without failed writes. If not, the pass
	// ends, and the caller of Reconcile calls it again later. If nil, every pass may.
	MayBegin func(types.NamespacedName) bool
	// Report receives every action. Passes call it concurrently.
	Report func(*application.Application, status.Outcome)
	// Failing receives the condition Reconciled of an Application that begins to fail, fails for
	// another reason, or no longer fails (then the status is True). It may be nil.
	Failing func(*application.Application, metav1.Condition)
	Now     func() time.Time

	memories      memories
	outage        pacing.Outage // of the hub
	statusLimiter pacing.StatusWriteLimiter
}

// read returns the stored Application, or nil if this reconciler must not act on it. It forgets a
// deleted Application.
func (r *Reconciler) read(ctx context.Context, name types.NamespacedName) (*application.Application, error) {
	app, err := r.Applications.Get(ctx, name)
	switch {
	case errors.Is(err, application.ErrFormat):
		return nil, nil // of another version of this program
	case err != nil:
		return nil, err
	case app == nil:
		r.Observers.Stop(name)
		if deleted := r.memories.forget(name); deleted != nil {
			for _, id := range deleted.Inventory { // a user gave up on these objects
				r.Report(deleted, status.Outcome{Action: status.Abandoned, Object: id})
			}
		}
	}
	return app, nil
}

// damages returns the errors of the indispensable documents: the inventory and the learned values.
// The agent writes all others again.
func damages(app *application.Application, cluster string) error {
	found := app.Damaged[application.InventoryKey(app.Holder)]
	if err := app.Damaged[application.LearnedKey]; err != nil && app.Status.ClusterName() == cluster {
		found = errors.Join(found, err)
	}
	return found
}

func isDamaged(app *application.Application, cluster string) bool {
	return damages(app, cluster) != nil
}

func (r *Reconciler) hub() hub { return hub{r.Applications, &r.outage, r.Now, r.Failing} }

func (r *Reconciler) placement() placement {
	return placement{r.ClusterName, r.Scope, r.Namespaces, r.RequireAccount, r.Target}
}

// AccountOf returns the account that writes the objects of an Application. The zero value is the agent.
func (r *Reconciler) AccountOf(app *application.Application) Account {
	return r.placement().accountOf(app)
}

func (r *Reconciler) statusWriter() statusWriter { return statusWriter{r.hub(), r.placement()} }

func (r *Reconciler) completePhase() completePhase { return completePhase{r.hub(), r.Report} }

func (r *Reconciler) actorFor(app *application.Application) *actor {
	return &actor{clusters: r.Clusters, account: r.placement().accountOf(app)}
}

func (r *Reconciler) finalizer(stored *application.Application, known *memory) finalizer {
	app := draftOf(stored)
	return finalizer{
		app: app, memory: known, hub: r.hub(), placement: r.placement(),
		remover:  remover{app, r.actorFor(app), r.Kinds, r.Report, r.Now},
		shutdown: r.shutdown(app, known),
		mayBegin: func() bool { return r.mayBegin(app.NamespacedName) },
	}
}

func (r *Reconciler) mayBegin(name types.NamespacedName) bool {
	return r.MayBegin == nil || r.MayBegin(name)
}

// shutdown returns the shutdown of a working copy. known is nil for a caller outside the loop.
func (r *Reconciler) shutdown(app *application.Application, known *memory) shutdown {
	return shutdown{
		app: app, memory: known, hub: r.hub(), defaults: r.ShutdownDefaults, report: r.Report,
		service: service{app, r.actorFor(app), r.Kinds, r.Shutdowns},
	}
}

package reconcile

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/pacing"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// Reconciler reconciles the Applications of one cluster.
type Reconciler struct {
	// ClusterName is the target cluster; Applications of others are left alone.
	ClusterName string
	// Scope is how far an Application may reach.
	Scope        mutate.Scope
	Applications Applications
	Clusters     Clusters
	Observers    Observers
	Kinds        Kinds
	// Target identifies the target, whatever its name: the UID of its namespace
	// kube-system. nil: not known.
	Target func() types.UID
	// RequireAccount has a service account of the Application's namespace on the target
	// write everything there: application.DefaultServiceAccount if it names none.
	RequireAccount bool
	// Namespaces are where the objects of Applications are on the target.
	Namespaces Namespaces
	// Secrets makes the values of the Secrets of hooks; nil: Applications with hooks are
	// refused.
	Secrets Secrets
	// Shutdowns asks Applications to shut down; nil: none is asked.
	Shutdowns        Shutdowns
	ShutdownDefaults ShutdownDefaults
	// Sources fetches URL sources; nil: Applications that name one are refused.
	Sources Sources
	// FieldManager is our own name in managedFields.
	FieldManager string
	// MaxHold bounds a hold on one object, from when it was first seen.
	MaxHold time.Duration
	// Report receives everything that was done.
	Report func(*application.Application, status.Outcome)
	Now    func() time.Time

	memories  memories
	outage    pacing.Outage // of the hub
	histories pacing.Turns
}

// read returns the stored Application, nil if there is none that is ours to touch. It forgets
// one that is gone.
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

// damages returns the errors of the documents without which nothing can be done: what is
// held, and what is desired beyond the spec. Others are written anew.
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

func (r *Reconciler) hub() hub { return hub{r.Applications, &r.outage, r.Now} }

func (r *Reconciler) residence() residence {
	return residence{r.ClusterName, r.Scope, r.Namespaces, r.RequireAccount, r.Target}
}

func (r *Reconciler) conclusion() conclusion { return conclusion{r.hub(), r.residence()} }

func (r *Reconciler) completePhase() completePhase { return completePhase{r.hub(), r.Report} }

func (r *Reconciler) actorFor(app *application.Application) *actor {
	return &actor{clusters: r.Clusters, account: r.residence().accountOf(app)}
}

func (r *Reconciler) departure(stored *application.Application, known *memory) departure {
	app := draftOf(stored)
	return departure{
		app: app, memory: known, hub: r.hub(), residence: r.residence(),
		remover:  remover{app, r.actorFor(app), r.Kinds, r.Report, r.Now},
		shutdown: r.shutdown(app, known),
	}
}

// shutdown is that of a working copy; known is nil for a caller that is not the loop.
func (r *Reconciler) shutdown(app *application.Application, known *memory) shutdown {
	return shutdown{
		app: app, memory: known, hub: r.hub(), defaults: r.ShutdownDefaults, report: r.Report,
		service: service{app, r.actorFor(app), r.Kinds, r.Shutdowns},
	}
}

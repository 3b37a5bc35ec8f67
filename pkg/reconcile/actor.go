package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/apply"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// Namespaces say where the objects of Applications are on the target. The agent
// has them from its administrator, and never from the hub.
type Namespaces struct {
	// Map gives the namespaces on the target of those on the hub; one that it does
	// not have is the same on both.
	Map map[string]string
	// Allowed are those on the target where objects may be; none means all.
	Allowed []string
}

// Of gives the namespace on the target of an Application's on the hub.
func (n Namespaces) Of(hub string) string { return cmp.Or(n.Map[hub], hub) }

func (n Namespaces) allow(target string) bool {
	return target == "" || len(n.Allowed) == 0 || slices.Contains(n.Allowed, target)
}

// homeOf is where the Application is at home.
func (r *Reconciler) homeOf(app *application.Application) mutate.Home {
	return mutate.Home{
		Hub: app.Namespace, Target: r.Namespaces.Of(app.Namespace), Account: r.accountOf(app) != Account{},
	}
}

// accountOf is who writes the objects of the Application: the zero value is the
// agent itself.
func (r *Reconciler) accountOf(app *application.Application) Account {
	name := mutate.Accounts{Required: r.RequireAccount}.For(app.ServiceAccount)
	if name == "" {
		return Account{}
	}
	return Account{Namespace: r.Namespaces.Of(app.Namespace), Name: name}
}

// actor is the target as the Application's account writes it. Who that is, and
// if there is one, is asked for when there is something to do; what fails then
// is not done by anybody else.
type actor struct {
	clusters Clusters
	account  Account

	cluster Cluster
}

func (r *Reconciler) actorFor(app *application.Application) *actor {
	return &actor{clusters: r.Clusters, account: r.accountOf(app)}
}

func (a *actor) as(ctx context.Context) (Cluster, error) {
	if a.cluster != nil {
		return a.cluster, nil
	}
	cluster, err := a.clusters.As(ctx, a.account)
	if err != nil {
		return nil, fmt.Errorf("act as service account %s/%s: %w", a.account.Namespace, a.account.Name, err)
	}
	a.cluster = cluster
	return cluster, nil
}

// Create implements Cluster.
func (a *actor) Create(ctx context.Context, ref manifest.Ref, object map[string]any) (map[string]any, error) {
	cluster, err := a.as(ctx)
	if err != nil {
		return nil, err
	}
	return cluster.Create(ctx, ref, object)
}

// Patch implements Cluster.
func (a *actor) Patch(ctx context.Context, ref manifest.Ref, live map[string]any, repair apply.Repair) (map[string]any, error) {
	cluster, err := a.as(ctx)
	if err != nil {
		return nil, err
	}
	return cluster.Patch(ctx, ref, live, repair)
}

// Delete implements Cluster.
func (a *actor) Delete(ctx context.Context, ref manifest.Ref, proof apply.Proof) (map[string]any, error) {
	cluster, err := a.as(ctx)
	if err != nil {
		return nil, err
	}
	return cluster.Delete(ctx, ref, proof)
}

package reconcile

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// phase is one step of the loop for one Application.
type phase interface {
	run(ctx context.Context, p *pass) (progress, error)
}

// phases lists the phases of an Application that belongs to this cluster, in order.
func (r *Reconciler) phases() []phase {
	return []phase{
		r.completePhase(),
		afterPhase{r.statusWriter()},
		fetchPhase{r.Sources, r.statusWriter()},
		planPhase{r.Kinds, r.Secrets, r.statusWriter(), r.MaxHold, r.FieldManager},
		awaitPhase{r.statusWriter()},
		permitPhase{r.Clusters, r.statusWriter()},
		observePhase{r.Observers, r.statusWriter()},
		comparePhase{r.Observers, r.placement()},
		inventoryPhase{r.hub()},
		actPhase{r.hub(), r.Kinds, r.Secrets, r.Report, r.Slots},
		recordPhase{r.statusWriter(), &r.statusLimiter, r.Report},
	}
}

// ensure runs the phases (steps 4 to 7 of the Krake documentation, Application
// controller) until one ends the pass.
func (r *Reconciler) ensure(ctx context.Context, p *pass) (ctrl.Result, error) {
	p.target = r.actorFor(p.app)
	defer func() {
		if p.isObserved {
			r.Observers.Start(p.app.NamespacedName, p.targets(), p.seen)
		}
	}()
	for _, phase := range r.phases() {
		if progress, err := phase.run(ctx, p); progress.ended || err != nil {
			return ctrl.Result{RequeueAfter: progress.again}, err
		}
	}
	return ctrl.Result{}, nil
}

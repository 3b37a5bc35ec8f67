package reconcile

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// phase is one step of the loop for one Application.
type phase interface {
	run(ctx context.Context, p *pass) (progress, error)
}

// phases are those of an Application that is to be here, in their order.
func (r *Reconciler) phases() []phase {
	return []phase{
		completePhase{r.completion()},
		fetchPhase{r.Sources, r.conclusion()},
		planPhase{r.Kinds, r.Secrets, r.conclusion(), r.MaxHold, r.FieldManager},
		awaitPhase{r.conclusion()},
		observePhase{r.Observers, r.conclusion()},
		comparePhase{r.Observers, r.residence()},
		claimPhase{r.hub()},
		actPhase{r.Applications, r.Kinds, r.Secrets, r.Report, r.Now},
		recordPhase{r.conclusion(), &r.histories, r.Report},
	}
}

// ensure runs the phases (steps 4 to 7 of the reference's loop) until one ends the pass.
func (r *Reconciler) ensure(ctx context.Context, p *pass) (ctrl.Result, error) {
	p.target = r.actorFor(p.app)
	defer observePhase{observers: r.Observers}.start(p)
	for _, phase := range r.phases() {
		if progress, err := phase.run(ctx, p); progress.ended || err != nil {
			return progress.result, err
		}
	}
	return ctrl.Result{}, nil
}

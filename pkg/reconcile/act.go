package reconcile

import (
	"context"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// actPhase does what the delta says (step 5): it deletes, creates and patches. One object that
// fails does not delay the others. What was done is recorded even if not all could be done.
type actPhase struct {
	hub     hub
	kinds   Kinds
	secrets Secrets
	report  func(*application.Application, status.Outcome)
}

func (a actPhase) run(ctx context.Context, p *pass) (progress, error) {
	if p.setting.enforces {
		r := remover{p.app, p.target, a.kinds, a.report, a.hub.now}
		p.leaving, p.failure = r.removeAll(ctx, p.delta.unwanted)
	} else {
		p.leaving = untouched(p.delta.unwanted)
	}
	reports := reporter{app: p.app, report: a.report}
	secretKeeper{pass: p, secrets: a.secrets, reporter: reports}.keep(ctx)
	w := writer{
		pass: p, answers: answers{p, reports, a.hub.now},
		ownership: ownership{app: p.app.NamespacedName, applications: a.hub.applications, adopts: p.app.Wishes.Adopt},
	}
	for _, o := range p.delta.missing {
		w.do(o, func() { w.create(ctx, o, maxTries) })
	}
	for _, o := range p.delta.differing {
		w.do(o, func() { w.repair(ctx, o, o.observed.Live.Fields(), maxTries) })
	}
	for _, o := range p.objects {
		if o.observed.Err == nil && !slices.Contains(p.delta.missing, o) && !slices.Contains(p.delta.differing, o) {
			o.isSettled = true
			o.memory.proved = o.observed.UID // its marks are observed
		}
	}
	return goOn(), nil
}

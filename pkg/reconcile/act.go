package reconcile

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// actPhase creates, patches and deletes the objects of the delta (step 5). A failure for one object
// does not delay the others, except that nothing is deleted before each missing object exists. The results
// are recorded even if some objects failed.
type actPhase struct {
	hub     hub
	kinds   Kinds
	secrets Secrets
	report  func(*application.Application, status.Outcome)
	slots   *semaphore.Weighted
}

func (a actPhase) run(ctx context.Context, p *pass) (progress, error) {
	reports := &reporter{app: p.app, report: a.report}
	secretKeeper{pass: p, secrets: a.secrets, reporter: reports}.keep(ctx)
	w := writer{
		target: p.target, fill: filler{p.target.clusters, p.target.account, p.target},
		ownership: ownership{app: p.app.NamespacedName, applications: a.hub.applications, adopts: p.app.Settings.Adopt},
		results:   &resultRecorder{reporter: reports, pass: p, applications: a.hub.applications, now: a.hub.now},
	}
	for rest := p.delta.missing; len(rest) > 0; {
		kind := ofFirstKind(rest)
		inParallel(a.slots, kind, func(o *object) { w.write(ctx, o, creation) })
		rest = rest[len(kind):]
	}
	inParallel(a.slots, p.delta.differing, func(o *object) { w.write(ctx, o, patching) })
	for _, o := range p.objects {
		if o.sources == nil && o.observed.Err == nil && !slices.Contains(p.delta.missing, o) && !slices.Contains(p.delta.differing, o) {
			o.isSettled = true
			o.memory.proved = o.observed.UID // its marks are observed
		}
	}
	p.leaving, p.failure = a.prune(ctx, p)
	return goOn(), nil
}

// prune deletes the objects that left the spec. A new object may replace one of them, so they stay as long as one could
// not be created.
func (a actPhase) prune(ctx context.Context, p *pass) (leaving []leavingObject, err error) {
	if !p.inputs.enforces {
		return untouched(p.delta.unwanted), nil
	}
	absent := slices.IndexFunc(p.delta.missing, func(o *object) bool { return !o.exists() })
	if absent < 0 {
		return remover{p.app, p.target, a.kinds, a.report, a.hub.now}.removeAll(ctx, p.delta.unwanted)
	}
	if first := p.delta.missing[absent]; len(p.delta.unwanted) > 0 && first.verdict.Reason != "" {
		first.verdict.Message += fmt.Sprintf("; until it exists, nothing that left the manifest is deleted (%d objects)", len(p.delta.unwanted))
	}
	return untouched(p.delta.unwanted), nil
}

// ofFirstKind returns the objects at the beginning that have one kind. They may be created at the
// same time; those of other kinds may need them.
func ofFirstKind(objects []*object) []*object {
	for i, o := range objects {
		if o.plan.Kind != objects[0].plan.Kind {
			return objects[:i]
		}
	}
	return objects
}

package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// record writes what is known now (step 7), and says when to look again. Nothing
// is written if it is what is stored already.
func (p *pass) record(ctx context.Context) (ctrl.Result, error) {
	app := p.app
	if !p.isPublished() {
		p.publish()
	}
	app.Inventory = p.inventory()
	app.Adopted = adoptedAmong(app.Inventory, app.Adopted)
	p.memory.keep(app.Inventory)
	p.tell()
	p.memory.spec, p.memory.recorded = p.spec, true
	found := p.findings()
	p.memory.contended.Store(int64(len(found.contended)))
	p.conclude(app, found)
	app.Status.Objects = p.objects()
	app.Status.Services = p.services()
	app.Status.ContainerHealth = containerHealth(found)

	failure := p.failures()
	if p.reverted {
		p.memory.queue(&p.histories, p.Now())
	}
	due := p.memory.due(app.Status, p.Now())
	switch rest := p.hub.rest(p.Now()); {
	case rest > 0: // everybody would wait for it
		p.memory.pend(app)
		return ctrl.Result{RequeueAfter: p.next(rest)}, failure
	case failure == nil && due > 0 && !p.mustWrite():
		p.memory.pend(app)
		return ctrl.Result{RequeueAfter: p.next(due)}, nil
	}
	before := app.Version
	err := p.update(ctx, app)
	switch {
	case err != nil:
		// The target is as this says, and nothing else does: of a spec that was
		// replaced meanwhile, too. It is written as soon as it can be.
		p.memory.pend(app)
		p.memory.written = time.Time{}
	case app.Version != before:
		p.memory.wrote(app.Status, p.Now())
		p.arePublished()
	default:
		p.memory.isStored(app.Status)
		p.arePublished()
	}
	return ctrl.Result{RequeueAfter: p.next(0)}, errors.Join(failure, err)
}

// mustWrite tells of what is not to be lost with this process.
func (p *pass) mustWrite() bool {
	return p.former.ObservedSpec != p.spec || !maps.Equal(p.app.Hooks.Tokens, p.tokens)
}

// publish has the documents say what is known now. An object that is not yet as a new
// spec says is published as it was before: what is to be released is found there.
// One that was never as the spec says is not: what it has is not ours to release.
func (p *pass) publish() {
	applied := []map[string]any{}
	var observed, learned []map[string]any
	for i := range p.planned {
		applied = append(applied, p.planned[i].desired())
		if values := p.learnedOf(i); values != nil {
			learned = append(learned, values)
		}
		if entry := p.observedOf(i); entry != nil {
			observed = append(observed, entry)
		}
	}
	ofSecrets, seen, known := p.secretDocuments()
	p.app.LastApplied = application.Publishing(append(applied, ofSecrets...))
	p.app.LastObserved = application.Publishing(append(observed, seen...))
	p.app.Learned = append(learned, known...)
}

// learnedOf gives what is published as learned of an object: what was learned
// formerly is not the spec's to release.
func (p *pass) learnedOf(i int) map[string]any {
	planned := &p.planned[i]
	if !p.mended[i] && !planned.forgot {
		if former := p.entryOf(p.app.Learned, i); former != nil {
			return planned.withForms(former)
		}
	}
	return planned.learned()
}

// observedOf gives what is published as observed of an object.
func (p *pass) observedOf(i int) map[string]any {
	switch projection := p.observed[i].Projection; {
	case projection != nil && p.mended[i]:
		return p.planned[i].asWritten(withoutMarks(projection.Fields()))
	case p.partly[i] != nil:
		return p.partly[i]
	}
	return p.entryOf(p.app.LastObserved.Objects(), i)
}

// inventory is what is on the target, or perhaps is.
func (p *pass) inventory() []manifest.ID {
	var ids []manifest.ID
	for i := range p.planned {
		if p.planned[i].unserved == nil && p.enforces() && !p.unclaimed[i] {
			ids = append(ids, p.planned[i].ID)
			continue
		}
		for _, id := range p.app.Inventory {
			if p.planned[i].is(id) {
				ids = append(ids, id)
			}
		}
	}
	for i := range p.secrets {
		if id := p.secrets[i].ID; p.enforces() && !p.secrets[i].unclaimed || slices.Contains(p.app.Inventory, id) {
			ids = append(ids, id)
		}
	}
	for _, kept := range p.kept {
		ids = append(ids, kept.id)
	}
	return ids
}

// all are the verdicts on objects of the spec, and on those that left it.
func (p *pass) all() []verdict {
	verdicts := make([]verdict, 0, len(p.planned)+len(p.kept))
	for i := range p.planned {
		v := p.verdicts[i]
		v.object = p.planned[i].ID
		verdicts = append(verdicts, v)
	}
	for _, kept := range p.kept {
		if v := kept.verdict(); v.reason != "" {
			verdicts = append(verdicts, v)
		}
	}
	return append(verdicts, p.secretVerdicts()...)
}

func (p *pass) failures() error {
	failures := []error{p.failure}
	for i := range p.secrets {
		failures = append(failures, p.secrets[i].verdict.err)
	}
	for i := range p.verdicts {
		failures = append(failures, p.verdicts[i].err)
	}
	return errors.Join(failures...)
}

// next gives when to look again by ourselves: when a hold or a pause is over, a
// fight forgotten, a deletion perhaps done, or a write due; 0 is never.
func (p *pass) next(due time.Duration) time.Duration {
	soonest := due
	consider := func(at time.Time) {
		if wait := max(at.Sub(p.now), time.Millisecond); !at.IsZero() && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	for i := range p.planned {
		consider(p.verdicts[i].again)
		_, forgotten := p.memory.object(p.planned[i].ID).fights.contended(p.now)
		consider(forgotten)
	}
	for _, kept := range p.kept {
		if kept.patience > 0 {
			consider(p.now.Add(kept.patience))
		}
	}
	for i := range p.secrets {
		consider(p.secrets[i].verdict.again)
	}
	consider(p.secretsDue())
	return soonest
}

// tell reports what began with this pass: conflicts and fights.
func (p *pass) tell() {
	for i := range p.planned {
		id, v := p.planned[i].ID, p.verdicts[i]
		if (v.reason == reasonAlreadyExists || v.reason == reasonOwnedByAnother) && p.formerReason(i) != v.reason {
			p.report(i, Outcome{Action: Conflict, Object: id, Reason: v.reason})
		}
		fight, known := p.fightAbout(i), p.memory.object(id)
		if fight != "" && !known.contended {
			p.report(i, Outcome{Action: Contended, Object: id, Reason: fight})
		}
		known.contended = fight != ""
	}
}

func idsOf(resources []resource) []manifest.ID {
	ids := make([]manifest.ID, 0, len(resources))
	for i := range resources {
		ids = append(ids, resources[i].ID)
	}
	return slices.Clip(ids)
}

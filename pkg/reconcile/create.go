package reconcile

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// gone is the field of a fight about an object that somebody deletes again and
// again.
const gone = "(the object itself)"

// maxTries is how often one object is written in one pass.
const maxTries = 3

// create creates an object from the whole desired state. Where nothing is to be
// written it only looks: a lost label makes an object that exists look missing.
func (p *pass) create(ctx context.Context, i, tries int) {
	planned, known := &p.planned[i], p.memory.object(p.planned[i].ID)
	again := !p.observed[i].Seen.IsZero()
	fight := []rivalry{{gone, blame.Culprit{}.Name()}}
	pausedUntil := known.fights.pausedUntil(fight, p.now)
	if !p.enforces() || again && !pausedUntil.IsZero() {
		p.miss(ctx, i, pausedUntil)
		return
	}
	if refused, ok := known.refused[planned.Revision]; ok {
		p.verdicts[i] = verdict{reason: reasonInvalid, message: refused}
		return
	}
	if p.rests(i) {
		return
	}
	live, err := p.target.Create(ctx, planned.Ref, planned.body())
	switch {
	case apierrors.IsAlreadyExists(err):
		// Created before a crash, or its label was removed: if it proves to be ours.
		p.mend(ctx, i, nil, tries)
	case apierrors.IsInvalid(err):
		known.refused = refusals{planned.Revision: told(err)}
		p.fail(i, err)
	case err != nil:
		p.failWrite(i, err)
	default:
		known.failed = failures{}
		if again {
			known.fights.repaired(fight, p.now)
		}
		p.created(i, live, again)
	}
}

func (p *pass) created(i int, live map[string]any, again bool) {
	planned := &p.planned[i]
	p.proved(i, live)
	p.app.Adopted = slices.DeleteFunc(slices.Clone(p.app.Adopted), func(id manifest.ID) bool { return sameObject(id, planned.ID) })
	outcome := Outcome{Action: Created, Object: planned.ID, Took: p.sinceSeen(i)}
	if again {
		outcome.Action = Recreated
		p.remember(i, drift{repaired: Recreated, took: outcome.Took})
	}
	p.report(i, outcome)
	if err := planned.accept(live, nil, nil); err != nil {
		p.fail(i, err)
		return
	}
	p.mended[i] = true
	p.took(i, live)
}

// miss is the verdict on an object that is missing and is not to be created now.
func (p *pass) miss(ctx context.Context, i int, until time.Time) {
	_, err := p.target.Patch(ctx, p.planned[i].Ref, nil, nothing)
	switch {
	case apierrors.IsNotFound(err) && !until.IsZero():
		p.verdicts[i] = verdict{reason: reasonContended, message: "the object is deleted again and again: leave it out of the manifest to let it go", again: until}
	case apierrors.IsNotFound(err):
		p.verdicts[i] = verdict{reason: reasonObserved, message: "the object is missing"}
	case err != nil:
		p.fail(i, err)
	default:
		p.mend(ctx, i, nil, maxTries)
		return
	}
	p.remember(i, drift{})
}

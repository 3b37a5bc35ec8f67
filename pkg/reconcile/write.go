package reconcile

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/pkg/apierror"
	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/pacing"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// maxTries is how often one object is written in one pass.
const maxTries = 3

// manyOperations is the number of operations of a patch that may not hold the whole repair:
// an API server takes no more in one request. manyRounds bounds such patches in one pass: a
// rival that writes all of it back would keep the pass for ever.
const (
	manyOperations = 5_000
	manyRounds     = 20
)

// writer creates and patches the objects of one pass.
type writer struct {
	pass      *pass
	ownership ownership
	answers   answers
}

// do writes one object, unless the target did not answer about another one: each of them
// would wait for an answer.
func (w writer) do(o *object, write func()) {
	if w.pass.lost != nil {
		o.fail(w.pass.lost)
		return
	}
	write()
	if apierror.IsUnconnected(o.verdict.Err) {
		w.pass.lost = o.verdict.Err
	}
}

// create creates an object from the whole desired state. If nothing may be written it only
// reads: an object that has lost its label looks missing.
func (w writer) create(ctx context.Context, o *object, tries int) {
	fight := []pacing.Rivalry{{Field: status.WholeObject, Rival: blame.Culprit{}.Name()}}
	pausedUntil := o.memory.fights.PausedUntil(fight, o.setting.now)
	if !o.setting.enforces || o.wasDeleted() && !pausedUntil.IsZero() {
		w.lookFor(ctx, o, pausedUntil)
		return
	}
	if refused, ok := o.memory.refused.OfWhole(o.plan.Revision); ok {
		o.verdict = status.Verdict{Reason: status.Invalid, Message: refused}
		return
	}
	if o.rest() {
		return
	}
	live, err := w.pass.target.Create(ctx, o.plan.Ref, o.plan.Body())
	switch {
	case apierrors.IsAlreadyExists(err):
		// Created before a crash, or its label was removed: if it proves to be ours.
		w.repair(ctx, o, nil, tries)
	case apierrors.IsInvalid(err):
		o.fail(err)
		o.memory.refused.AddWhole(o.plan.Revision, o.verdict.Message)
	case err != nil:
		o.failWrite(err)
	default:
		o.memory.failures = pacing.Failures{}
		if o.wasDeleted() {
			o.memory.fights.Record(fight, o.setting.now)
		}
		w.answers.recordCreation(o, live)
	}
}

// lookFor sets the verdict on an object that is missing and must not be created now.
func (w writer) lookFor(ctx context.Context, o *object, until time.Time) {
	_, err := w.pass.target.Patch(ctx, o.plan.Ref, nil, readOnly)
	switch {
	case apierrors.IsNotFound(err) && !until.IsZero():
		o.verdict = status.Verdict{Reason: status.Contended, Message: "the object is deleted again and again: leave it out of the manifest to let it go", Again: until}
	case apierrors.IsNotFound(err):
		o.verdict = status.Verdict{Reason: status.Observed, Message: "the object is missing"}
	case err != nil:
		o.fail(err)
	default:
		w.repair(ctx, o, nil, maxTries)
		return
	}
	w.answers.reporter.detect(o, status.Drift{}, o.verdict.Reason)
}

// readOnly is the patch of an object that is only read.
func readOnly(map[string]any) (schema.Patch, error) { return nil, nil }

// repair patches the observed fields that differ, and nothing else. live is the object as
// it was last seen, nil to read it.
func (w writer) repair(ctx context.Context, o *object, live map[string]any, tries int) {
	for r := (&repair{object: o}); ; {
		if tries == 0 {
			o.verdict = status.Verdict{Reason: status.Error, Message: "somebody else writes it as fast as this agent: it is tried again", Again: o.setting.now.Add(time.Second)}
			return
		}
		if o.rest() {
			return
		}
		var d decision
		after, err := w.pass.target.Patch(ctx, o.plan.Ref, live, func(live map[string]any) (schema.Patch, error) {
			var err error
			d, err = w.decide(ctx, r, live)
			return d.patch, err
		})
		again := false
		switch {
		case apierrors.IsNotFound(err): // it went meanwhile
			w.create(ctx, o, tries-1)
		case apierrors.IsInvalid(err):
			again, live, tries = true, d.before, w.answers.recordRefusal(r, d, err, tries)
		case err != nil:
			w.answers.recordFailure(o, d, err)
		case d.marksOnly:
			again = w.answers.recordMarks(o, d, after)
			r, live, tries = &repair{object: o}, after, tries-1
		case len(d.patch) >= manyOperations && versionOf(after) != versionOf(d.before): // each time there is less
			again, live = true, after
			if r.rounds++; r.rounds == manyRounds {
				tries = 0
			}
		default:
			again = w.answers.recordPatch(r, d, after, tries > 1)
			r, live, tries = &repair{object: o}, after, tries-1
		}
		if !again {
			return
		}
	}
}

// decide decides on a live object that is ours, and records an adoption before it is made.
func (w writer) decide(ctx context.Context, r *repair, live map[string]any) (decision, error) {
	isUnmarked, err := w.ownership.check(ctx, r.object, live)
	if err != nil {
		return decision{before: live}, err
	}
	r.object.hold = r.object.holdFor(holdOf(live))
	if isUnmarked && r.object.setting.enforces {
		d := r.decideMarks(live)
		return d, w.claimAdoption(ctx, r.object, d)
	}
	return r.decide(live), nil
}

// claimAdoption records that an object is about to be adopted, before it is: it is not
// deleted with the Application unless the user asks for that.
func (w writer) claimAdoption(ctx context.Context, o *object, d decision) error {
	app := w.pass.app
	if len(d.patch) == 0 || o.isProved(d.before) || slices.Contains(app.Adopted, o.plan.ID) {
		return nil
	}
	claimed := *app
	claimed.Adopted = append(slices.Clone(app.Adopted), o.plan.ID)
	if !slices.Contains(app.Inventory, o.plan.ID) {
		claimed.Inventory = append(slices.Clone(app.Inventory), o.plan.ID)
	}
	err := w.ownership.applications.Update(ctx, &claimed)
	switch {
	case apierror.IsUnanswered(err):
		return errUnclaimed // by the hub: nothing is wrong with the target
	case err != nil:
		return err
	}
	*app = claimed
	return nil
}

package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// maxTries is the maximum number of writes of one object in one pass.
const maxTries = 3

// manyOperations is the size of a patch that may lack a part of the repair, because an API server
// limits the operations of one request. manyRounds bounds such patches in one pass. Without it, a
// rival that reverts all of them would keep the pass running forever.
const (
	manyOperations = 5_000
	manyRounds     = 20
)

// writer creates and patches the objects of one pass.
type writer struct {
	pass      *pass
	target    Cluster
	ownership ownership
	answers   answers
}

// do writes one object. If the target did not answer about another object, do writes nothing,
// because each request would wait for an answer.
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

// create creates an object from the whole desired state. If it must not write, it only reads,
// because an object without its label looks missing.
func (w writer) create(ctx context.Context, o *object, tries int) {
	o.seeDeletion()
	fight := []pacing.Rivalry{{Field: status.WholeObject, Rival: blame.Culprit{}.Name()}}
	pausedUntil := o.memory.fights.PausedUntil(fight, o.setting.now)
	if !o.setting.enforces || o.wasDeleted() && !pausedUntil.IsZero() {
		w.lookFor(ctx, o, pausedUntil)
		return
	}
	if o.memory.refused != nil {
		o.memory.refused.Renew(o.circumstances(nil), o.setting.now)
	}
	if refused, ok := o.memory.refused.OfWhole(o.plan.Revision); ok {
		o.verdict = status.Verdict{Reason: status.Invalid, Message: refused, Again: o.memory.refused.Until()}
		return
	}
	if o.rest() {
		return
	}
	live, err := w.createAny(ctx, o)
	switch {
	case apierrors.IsAlreadyExists(err):
		// It was created before a crash, or lost its label. repair checks that it is ours.
		w.repair(ctx, o, nil, tries)
	case apierrors.IsInvalid(err):
		o.fail(err)
		o.memory.refused = o.memory.refused.AddWhole(o.plan.Revision, o.verdict.Message, o.circumstances(nil), o.setting.now)
		o.verdict.Again = o.memory.refused.Until()
	case err != nil:
		o.failWrite(err)
	default:
		o.memory.failures, o.memory.refused = pacing.Failures{}, nil
		if o.wasDeleted() {
			o.memory.fights.Record(fight, o.setting.now)
		}
		w.answers.recordCreation(o, live)
	}
}

// lookFor sets the verdict on an object that is missing and must not be created now.
func (w writer) lookFor(ctx context.Context, o *object, until time.Time) {
	_, err := w.target.Patch(ctx, o.plan.Ref, nil, readOnly)
	switch {
	case apierrors.IsNotFound(err) && !until.IsZero():
		o.verdict = status.Verdict{Reason: status.Contended, Message: "another client deletes the object again and again: leave it out of the manifest to stop creating it", Again: until}
	case apierrors.IsNotFound(err):
		o.verdict = status.Verdict{Reason: status.ObserveMode, Message: "the object is missing"}
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

// repair patches the observed fields that differ, and nothing else. live is the last known object,
// or nil to read it.
func (w writer) repair(ctx context.Context, o *object, live map[string]any, tries int) {
	for r := (&repair{object: o}); ; {
		if tries == 0 {
			o.verdict = status.Verdict{Reason: status.Error, Message: "another client writes it as fast as this agent: it is tried again", Again: o.setting.now.Add(time.Second)}
			return
		}
		if o.rest() {
			return
		}
		var d decision
		after, err := w.target.Patch(ctx, o.plan.Ref, live, func(live map[string]any) (schema.Patch, error) {
			var err error
			d, err = w.decide(ctx, r, live)
			return d.patch, err
		})
		again := false
		switch {
		case errors.Is(err, errNotTakenOver):
			o.verdict = status.Verdict{Reason: status.ObserveMode, Message: errNotTakenOver.Error()}
			w.answers.reporter.detect(o, status.Drift{}, o.verdict.Reason)
		case apierrors.IsNotFound(err): // deleted in the meantime
			w.create(ctx, o, tries-1)
		case d.isRefused(err):
			again, live, tries = true, d.before, w.climb(ctx, r, d, err, tries)
		case err != nil:
			w.answers.recordFailure(o, d, err)
		case d.marksOnly:
			again = w.answers.recordMarks(o, d, after)
			r, live, tries = &repair{object: o}, after, tries-1
		case len(d.patch) >= manyOperations && versionOf(after) != versionOf(d.before): // each patch reduces the remaining repair
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

// isRefused reports whether the API server refuses fields of the object. If it refuses the marks, no field is tried
// without them.
func (d decision) isRefused(err error) bool { return !d.marksOnly && apierror.IsRefusal(err) }

// decide decides on a live object that is ours, and records an adoption before it is made. If nothing may be
// written, an object without our marks is foreign: the status must not show what it contains.
func (w writer) decide(ctx context.Context, r *repair, live map[string]any) (decision, error) {
	o := r.object
	isUnmarked, err := w.ownership.check(ctx, o, live)
	switch {
	case err != nil:
		return decision{before: live}, err
	case !o.setting.enforces && !o.plan.Marks().Prove(live) && !o.isProved(live):
		return decision{before: live}, errNotTakenOver
	}
	o.hold = o.holdFor(holdOf(live))
	if isUnmarked && o.setting.enforces {
		d := r.decideMarks(live)
		return d, w.claimAdoption(ctx, o, d)
	}
	return r.decide(live), nil
}

// claimAdoption records the adoption of an object before it is made. An adopted object is deleted
// with the Application only if the user requests it.
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
		return errUnclaimed // the hub did not answer: the target has no problem
	case err != nil:
		return err
	}
	*app = claimed
	return nil
}

// createAny creates an object. If the API server refuses a learned value, it is forgotten, and then
// all learned values are: the manifest does not ask for them.
func (w writer) createAny(ctx context.Context, o *object) (live map[string]any, err error) {
	live, err = w.target.Create(ctx, o.plan.Ref, o.plan.Body())
	for _, forget := range []func(*plan.Object, []string) (bool, error){forgetNamed, forgetLearned} {
		if !apierrors.IsInvalid(err) {
			return live, err
		}
		candidate := o.plan
		forgot, failed := forget(&candidate, apierror.Fields(err))
		if failed != nil {
			return nil, failed
		}
		if !forgot {
			continue
		}
		created, other := w.target.Create(ctx, candidate.Ref, candidate.Body())
		if other == nil {
			o.plan = candidate
			return created, nil
		}
		if !apierrors.IsInvalid(other) {
			return nil, other
		}
	}
	return nil, err
}

// forgetNamed forgets the learned values at the fields that the API server names.
func forgetNamed(o *plan.Object, fields []string) (some bool, err error) {
	for _, field := range fields {
		forgot, err := o.ForgetRefused(o.Desired(), apierror.Names(field))
		if err != nil {
			return false, err
		}
		some = some || forgot
	}
	return some, nil
}

func forgetLearned(o *plan.Object, _ []string) (bool, error) { return o.ForgetLearned() }

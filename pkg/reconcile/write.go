package reconcile

import (
	"context"
	"errors"
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
// competing writer that reverts all of them would keep the pass running forever.
const (
	manyOperations = 5_000
	manyRounds     = 20
)

// writer creates and patches the objects of one pass, several at the same time. What they share is in results.
type writer struct {
	target    Cluster
	ownership ownership
	fill      filler
	results   *resultRecorder
}

// step is what follows an attempt to write an object.
type step int

const (
	done step = iota
	creation
	patching
)

// write creates an object, or repairs it. If the target did not answer about another object, it writes
// nothing, because each request would wait for an answer.
func (w writer) write(ctx context.Context, o *object, next step) {
	if lost := w.results.lost(); lost != nil {
		o.fail(lost)
		return
	}
	if err := w.fill.into(ctx, o); err != nil {
		o.observed = o.memory.fill.observed
		o.fail(err)
	} else {
		w.attempt(ctx, o, next)
	}
	if o.sources != nil && o.verdict.Err == nil {
		o.remember()
	}
	w.results.recordLoss(o.verdict.Err)
}

// attempt makes attempts until the object is as desired, or must be left as it is.
func (w writer) attempt(ctx context.Context, o *object, next step) {
	r := &repair{object: o, live: o.observed.Live.Fields(), tries: maxTries}
	for next != done {
		if next == creation {
			next = w.create(ctx, r)
		} else {
			next = w.patch(ctx, r)
		}
	}
}

// create creates an object from the whole desired state. If it must not write, it only reads,
// because an object without its label looks missing.
func (w writer) create(ctx context.Context, r *repair) step {
	o := r.object
	o.seeDeletion()
	r.live = nil
	deletion := []pacing.Contention{{Field: status.WholeObject, Writer: blame.Culprit{}.Name()}}
	pausedUntil := o.memory.contentions.PausedUntil(deletion, o.inputs.now)
	if !o.inputs.enforces || o.wasDeleted() && !pausedUntil.IsZero() {
		return w.lookFor(ctx, r, pausedUntil)
	}
	if o.memory.refused != nil {
		o.memory.refused.Renew(o.circumstances(nil), o.inputs.now)
	}
	if refused, ok := o.memory.refused.OfWhole(o.plan.Revision); ok {
		o.verdict = status.Verdict{Reason: status.Invalid, Message: refused, Again: o.memory.refused.Until()}
		return done
	}
	if o.rest() {
		return done
	}
	live, err := w.createAny(ctx, o)
	switch {
	case apierrors.IsAlreadyExists(err):
		// It was created before a crash, or lost its label. patch checks that it is ours.
		return patching
	case apierrors.IsInvalid(err):
		o.fail(err)
		o.memory.refused = o.memory.refused.AddWhole(o.plan.Revision, o.verdict.Message, o.circumstances(nil), o.inputs.now)
		o.verdict.Again = o.memory.refused.Until()
	case err != nil:
		o.failWrite(err)
	default:
		o.memory.failures, o.memory.refused = pacing.Failures{}, nil
		if o.wasDeleted() {
			o.memory.contentions.Record(deletion, o.inputs.now)
		}
		w.results.recordCreation(o, live)
	}
	return done
}

// lookFor sets the verdict on an object that is missing and must not be created now.
func (w writer) lookFor(ctx context.Context, r *repair, until time.Time) step {
	o := r.object
	_, err := w.target.Patch(ctx, o.plan.Ref, nil, readOnly)
	switch {
	case apierrors.IsNotFound(err) && !until.IsZero():
		o.verdict = status.Verdict{Reason: status.Contended, Message: "another client deletes the object again and again: leave it out of the manifest to stop creating it", Again: until}
	case apierrors.IsNotFound(err):
		o.verdict = status.Verdict{Reason: status.ObserveMode, Message: "the object is missing"}
	case err != nil:
		o.fail(err)
	default:
		r.tries = maxTries
		return patching
	}
	w.results.detect(o, status.Drift{}, o.verdict.Reason)
	return done
}

// readOnly is the patch of an object that is only read.
func readOnly(map[string]any) (schema.Patch, error) { return nil, nil }

// patch patches the observed fields that differ, and nothing else.
func (w writer) patch(ctx context.Context, r *repair) step {
	o := r.object
	if r.tries == 0 {
		o.verdict = status.Verdict{Reason: status.Error, Message: "another client writes it as fast as this agent: it is tried again", Again: o.inputs.now.Add(time.Second)}
		return done
	}
	if o.rest() {
		return done
	}
	var d decision
	after, err := w.target.Patch(ctx, o.plan.Ref, r.live, func(live map[string]any) (schema.Patch, error) {
		var err error
		d, err = w.decide(ctx, r, live)
		return d.patch, err
	})
	isAgain := false
	switch {
	case errors.Is(err, errNotTakenOver):
		o.verdict = status.Verdict{Reason: status.ObserveMode, Message: errNotTakenOver.Error()}
		w.results.detect(o, status.Drift{}, o.verdict.Reason)
	case apierrors.IsNotFound(err): // deleted in the meantime
		r.restart(nil)
		return creation
	case d.isRefused(err):
		r.live, isAgain = d.before, true
		w.climb(ctx, r, d, err)
	case err != nil:
		w.results.recordFailure(o, d, err)
	case d.marksOnly:
		isAgain = w.results.recordMarks(o, d, after)
		r.restart(after)
	case len(d.patch) >= manyOperations && versionOf(after) != versionOf(d.before): // each patch reduces the remaining repair
		r.live, isAgain = after, true
		if r.rounds++; r.rounds == manyRounds {
			r.tries = 0
		}
	default:
		isAgain = w.results.recordPatch(r, d, after)
		r.restart(after)
	}
	if isAgain {
		return patching
	}
	return done
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
	case !o.inputs.enforces && !o.plan.Marks().Prove(live) && !o.isProved(live):
		return decision{before: live}, errNotTakenOver
	}
	o.hold = o.holdFor(holdOf(live))
	if isUnmarked && o.inputs.enforces {
		d := r.decideMarks(live)
		if len(d.patch) == 0 || o.isProved(live) {
			return d, nil
		}
		return d, w.results.claimAdoption(ctx, o)
	}
	return r.decide(live), nil
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
		path, _ := schema.ParsePath(field) // no learned value is at an empty path
		forgot, err := o.ForgetRefused(o.Desired(), path.Names())
		if err != nil {
			return false, err
		}
		some = some || forgot
	}
	return some, nil
}

func forgetLearned(o *plan.Object, _ []string) (bool, error) { return o.ForgetLearned() }

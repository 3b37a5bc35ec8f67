package reconcile

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/pkg/apierror"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/pacing"
	"github.com/krake-observer/krake-observer/pkg/plan"
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
	reporter  reporter
	now       func() time.Time
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
		w.recordCreation(o, live)
	}
}

func (w writer) recordCreation(o *object, live map[string]any) {
	o.memory.proved = uidOf(live)
	app := w.pass.app
	app.Adopted = slices.DeleteFunc(slices.Clone(app.Adopted), func(id manifest.ID) bool { return plan.IsSame(id, o.plan.ID) })
	outcome := status.Outcome{Action: status.Created, Took: o.took(w.now())}
	if o.wasDeleted() {
		outcome.Action = status.Recreated
		w.reporter.remember(o, status.Drift{Repaired: status.Recreated, Took: outcome.Took})
	}
	w.reporter.about(o, outcome)
	if err := o.plan.Accept(live, nil, nil); err != nil {
		o.fail(err)
		return
	}
	o.isSettled = true
	w.take(o, live)
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
	w.reporter.detect(o, status.Drift{}, o.verdict.Reason)
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
			again, live, tries = true, d.before, w.recordRefusal(r, d, err, tries)
		case err != nil:
			w.recordFailure(o, d, err)
		case d.marksOnly:
			again = w.recordMarks(o, d, after)
			r, live, tries = &repair{object: o}, after, tries-1
		case len(d.patch) >= manyOperations && versionOf(after) != versionOf(d.before): // each time there is less
			again, live = true, after
			if r.rounds++; r.rounds == manyRounds {
				tries = 0
			}
		default:
			again = w.recordPatch(r, d, after, tries > 1)
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

// recordFailure takes over that a repair could not be made.
func (w writer) recordFailure(o *object, d decision, err error) {
	o.failWrite(err)
	if len(d.patch) > 0 && o.hasDrifted() {
		w.reporter.about(o, status.Outcome{Action: status.RepairFailed, Paths: pathsOf(d.drift), Reason: o.verdict.Reason})
	}
}

// recordRefusal takes over that the API server refused the values of a patch, and returns
// how many tries remain. It gives up a learned value that the server refuses. Elements that
// a list lacks then replace elements that are not observed, if there are any. What the
// server names besides is left unrepaired until spec or object changes, and the rest is
// repaired.
func (w writer) recordRefusal(r *repair, d decision, refusal error, tries int) (remaining int) {
	fields := apierror.Fields(refusal)
	names := make([][]string, 0, len(fields))
	for _, field := range fields {
		names = append(names, apierror.Names(field))
	}
	if r.forgetRefused(d, names) {
		return tries - 1
	}
	if r.displaces = r.mayDisplace(d); r.displaces {
		r.hasDisplaced = true
		return tries
	}
	refused := pacing.Named(d.drift, fields)
	if tries == 1 {
		refused = d.drift
	}
	o := r.object
	if o.hasDrifted() { // a rival that changes it again and again has us ask again and again
		o.memory.fights.Record(d.rivalries(refused), o.setting.now)
	}
	o.memory.refused.Add(refused, status.Explain(reasonOf(refusal), refusal))
	return max(tries-1, 1) // if all was refused, nothing is written
}

// recordMarks reports that an object has our marks, and whether the rest of it may be
// repaired: the API server has kept them.
func (w writer) recordMarks(o *object, d decision, after map[string]any) (kept bool) {
	outcome := status.Outcome{Action: status.Adopted}
	if o.isProved(after) {
		outcome = status.Outcome{Action: status.Reverted, Paths: pathsOf(d.drift), Took: o.took(w.now())}
		o.memory.fights.Record(d.rivalries(d.drift), o.setting.now)
	}
	if !o.plan.Marks().Prove(after) {
		o.verdict = status.Verdict{
			Reason: status.Ineffective, Fields: pathsOf(d.drift),
			Message: "the API server, or a webhook there, does not keep the marks by which objects are known: have it leave labels and annotations of " + application.Domain + " alone",
		}
		return false
	}
	o.memory.proved = uidOf(after)
	w.reporter.about(o, outcome)
	return true
}

// recordPatch takes over what the API server made of a patch. A value that it wrote in
// another form is its way to write the desired one: it would answer the same for ever.
//
// Another field that differs in the answer was not sent, and may depend on one that was: if
// mayAgain, recordPatch asks for another patch.
func (w writer) recordPatch(r *repair, d decision, after map[string]any, mayAgain bool) (again bool) {
	o := r.object
	o.memory.failures = pacing.Failures{}
	if o.plan.Marks().Prove(after) { // an object to be adopted is only read where nothing is written
		o.memory.proved = uidOf(after)
	}
	if len(d.patch) > 0 {
		w.reportPatch(o, d, after)
		var sent schema.Differences
		if mayAgain {
			sent = d.drift
		}
		if err := o.plan.Accept(after, sent, d.unrepaired); err != nil {
			o.fail(err)
			return false
		}
	}
	o.verdict = d.verdict
	if d.verdict.Reason != "" && len(d.unrepaired) > 0 {
		culprit := blame.Of(d.before, pathsOf(d.unrepaired), o.setting.fieldManager)
		w.reporter.detect(o, status.Drift{Differences: d.unrepaired, Culprit: culprit}, d.verdict.Reason)
	}
	remaining := r.remaining(d, after)
	if len(remaining) > 0 && d.verdict.Reason == "" {
		o.verdict = status.Verdict{
			Reason: status.Ineffective, Fields: pathsOf(remaining),
			Message: "the repair had no lasting effect: either the desired state is not legal itself, or the API server does not keep it: compare them (kubectl krake diff), and correct the manifest, or leave the field out of the observer schema",
		}
	}
	o.isSettled = o.verdict.Reason == ""
	if _, fields := plan.SplitMarks(d.drift); len(fields) > 0 && len(d.patch) > 0 {
		o.part = r.part(d, after)
	}
	w.take(o, after)
	return mayAgain && len(d.patch) > 0 && d.verdict.Reason == "" &&
		slices.ContainsFunc(remaining, func(difference schema.Difference) bool { return !plan.IsAmong(d.drift, difference.Path) })
}

// reportPatch reports the repair of a drift, or a change of the spec.
func (w writer) reportPatch(o *object, d decision, after map[string]any) {
	outcome := status.Outcome{Action: status.Configured, Paths: pathsOf(d.drift)}
	if o.hasDrifted() {
		outcome.Action, outcome.Culprit, outcome.Took = status.Reverted, d.culprit, o.took(w.now())
		outcome.NoOp = versionOf(after) == versionOf(d.before)
		w.pass.hasReverted = true
		o.memory.fights.Record(d.rivalries(d.drift), o.setting.now)
		w.reporter.remember(o, status.Drift{Differences: d.drift, Culprit: d.culprit, Repaired: status.Reverted, Took: outcome.Took})
	}
	w.reporter.about(o, outcome)
}

// take takes over an object as the API server has it now.
func (w writer) take(o *object, live map[string]any) {
	o.take(live)
	w.pass.seen = append(w.pass.seen, live)
}

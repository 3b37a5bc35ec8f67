package reconcile

import (
	"context"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// resultRecorder evaluates the API server's answers to the writes of a pass. It sets verdicts, learned
// values, memory, history and outcomes. The lock of its reporter guards what the objects of the pass share.
type resultRecorder struct {
	*reporter

	pass         *pass
	applications Applications
	now          func() time.Time
}

// lost returns the error of a target that does not answer, nil if it does.
func (rec *resultRecorder) lost() error {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.pass.lost
}

// recordLoss records that the target does not answer, if the error of a write says so.
func (rec *resultRecorder) recordLoss(err error) {
	if !apierror.IsUnconnected(err) {
		return
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.pass.lost = err
}

// claimAdoption records the adoption of an object before it is made. An adopted object is deleted
// with the Application only if the user requests it.
func (rec *resultRecorder) claimAdoption(ctx context.Context, o *object) error {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	app := rec.app
	if slices.Contains(app.Adopted, o.plan.ID) {
		return nil
	}
	claimed := *app
	claimed.Adopted = append(slices.Clone(app.Adopted), o.plan.ID)
	if !slices.Contains(app.Inventory, o.plan.ID) {
		claimed.Inventory = append(slices.Clone(app.Inventory), o.plan.ID)
	}
	err := rec.applications.Update(ctx, &claimed)
	switch {
	case apierror.IsUnanswered(err):
		return errUnclaimed // the hub did not answer: the target has no problem
	case err != nil:
		return err
	}
	*app = claimed
	return nil
}

func (rec *resultRecorder) recordCreation(o *object, live map[string]any) {
	o.memory.proved = uidOf(live)
	rec.disown(o)
	outcome := status.Outcome{Action: status.Created, Took: o.took(rec.now())}
	if o.wasDeleted() {
		outcome.Action = status.Recreated
		rec.remember(o, status.Drift{Repaired: status.Recreated, Took: outcome.Took})
	}
	rec.about(o, outcome)
	if err := o.plan.Accept(live, nil, nil); err != nil {
		o.fail(err)
		return
	}
	o.isSettled = true
	rec.take(o, live)
}

// disown forgets that an object was adopted: it is created by us.
func (rec *resultRecorder) disown(o *object) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	app := rec.app
	app.Adopted = slices.DeleteFunc(slices.Clone(app.Adopted), func(id manifest.ID) bool { return plan.IsSame(id, o.plan.ID) })
}

// recordFailure records that a repair failed.
func (rec *resultRecorder) recordFailure(o *object, d decision, err error) {
	o.failWrite(err)
	if len(d.patch) > 0 && o.hasDrifted() {
		rec.about(o, status.Outcome{Action: status.RepairFailed, Paths: pathsOf(d.drift), Reason: o.verdict.Reason})
	}
}

// recordMarks records the patch that wrote our marks. It reports whether the API server kept them,
// so that the other fields may be repaired.
func (rec *resultRecorder) recordMarks(o *object, d decision, after map[string]any) (kept bool) {
	outcome := status.Outcome{Action: status.Adopted}
	if o.isProved(after) {
		outcome = status.Outcome{Action: status.Reverted, Paths: pathsOf(d.drift), Took: o.took(rec.now())}
		o.memory.contentions.Record(d.contentions(d.drift), o.inputs.now)
	}
	if !o.plan.Marks().Prove(after) {
		o.verdict = status.Verdict{
			Reason: status.Ineffective, Fields: pathsOf(d.drift),
			Message: "the API server, or a webhook there, drops the marks that identify objects: configure it to keep labels and annotations of " + application.Domain,
		}
		return false
	}
	o.memory.proved = uidOf(after)
	rec.about(o, outcome)
	return true
}

// recordPatch evaluates the API server's answer to a patch. If the server stores a sent value in
// another form, another patch would have the same answer. That form counts as the desired value.
//
// Another field that differs in the answer was not sent, and may depend on a sent one. If there are tries left,
// recordPatch requests another patch for it.
func (rec *resultRecorder) recordPatch(r *repair, d decision, after map[string]any) (isAgain bool) {
	o, mayAgain := r.object, r.tries > 1
	o.memory.failures = pacing.Failures{}
	if o.plan.Marks().Prove(after) { // an object to be adopted is only read where nothing is written
		o.memory.proved = uidOf(after)
	}
	if len(d.patch) > 0 {
		rec.reportPatch(o, d, after)
		var sent schema.Differences
		if mayAgain {
			sent = d.drift
		}
		if err := o.plan.Accept(after, sent, d.unrepaired); err != nil {
			o.fail(err)
			return false
		}
	}
	o.followRefusals(d, after)
	o.verdict = d.verdict
	if d.verdict.Reason != "" && len(d.unrepaired) > 0 {
		culprit := blame.Of(d.before, pathsOf(d.unrepaired), o.inputs.fieldManager)
		rec.detect(o, status.Drift{Differences: d.unrepaired, Culprit: culprit}, d.verdict.Reason)
	}
	remaining := r.remaining(d, after)
	if len(remaining) > 0 && d.verdict.Reason == "" {
		o.verdict = status.Verdict{
			Reason: status.Ineffective, Fields: pathsOf(remaining),
			Message: "the repair had no lasting effect: either the desired state itself is invalid, or the API server does not keep it: compare them (kubectl krake diff), and correct the manifest, or leave the field out of the observer schema",
		}
	}
	o.isSettled = o.verdict.Reason == ""
	if _, fields := plan.SplitMarks(d.drift); len(fields) > 0 && len(d.patch) > 0 {
		o.part = r.part(d, after)
	}
	rec.take(o, after)
	return mayAgain && len(d.patch) > 0 && d.verdict.Reason == "" &&
		slices.ContainsFunc(remaining, func(difference schema.Difference) bool { return !plan.IsAmong(d.drift, difference.Path) })
}

// followRefusals forgets refusals if all is repaired, and else notes what the object is now.
func (o *object) followRefusals(d decision, after map[string]any) {
	if len(d.unrepaired) == 0 {
		o.memory.refused = nil
	} else if o.memory.refused != nil {
		o.memory.refused.Follow(o.circumstances(after))
	}
}

// reportPatch reports the repair of a drift, or a change for a new spec.
func (rec *resultRecorder) reportPatch(o *object, d decision, after map[string]any) {
	outcome := status.Outcome{Action: status.Configured, Paths: pathsOf(d.drift), Removed: pathsOf(d.removed)}
	if o.hasDrifted() && !o.isAsLeft(d.before) {
		outcome.Action, outcome.Culprit, outcome.Took = status.Reverted, d.culprit, o.took(rec.now())
		outcome.NoOp = versionOf(after) == versionOf(d.before)
		o.memory.contentions.Record(d.contentions(d.drift), o.inputs.now)
		rec.remember(o, status.Drift{
			Differences: d.drift, Removed: outcome.Removed, Culprit: d.culprit, Repaired: status.Reverted, Took: outcome.Took,
		})
	}
	rec.about(o, outcome)
}

// take records an object as the API server returned it.
func (rec *resultRecorder) take(o *object, live map[string]any) {
	o.take(live)
	if o.sources != nil {
		o.memory.fill.version = versionOf(live)
		return // observers do not know it
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.pass.seen = append(rec.pass.seen, live)
}

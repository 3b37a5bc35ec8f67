package reconcile

import (
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/pacing"
	"github.com/krake-observer/krake-observer/pkg/plan"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// setting is what the decisions on all objects of a pass have in common. It does not change
// during the pass.
type setting struct {
	now time.Time
	// enforces reports whether anything may be written to the target.
	enforces bool
	wishes   application.Wishes
	// isNewSpec: the objects were not brought to this spec before. mayHaveMissed: this
	// process has not watched them since they were brought to the former one.
	isNewSpec, mayHaveMissed bool
	maxHold                  time.Duration
	fieldManager             string
	// Documents of the Application as the pass began.
	lastObserved application.Published
	learned      []map[string]any
	home         string
}

// object is one object of an Application in one pass: what is desired of it, what was seen,
// and what was found.
type object struct {
	setting *setting
	memory  *objectMemory
	plan    plan.Object
	// former is what the status said of it when the pass began, isKnown that it said anything.
	former  application.ObjectStatus
	isKnown bool

	observed observer.Observation
	hold     *application.Hold
	verdict  status.Verdict
	// isUnclaimed: the hub has not recorded yet that it is held.
	isUnclaimed bool
	// isSettled: it is on the target as the spec says now.
	isSettled bool
	// part is what is published of an object of which only a part is as the spec says.
	part map[string]any
}

// target is what observers watch of it.
func (o *object) target() observer.Target {
	return observer.Target{Ref: o.plan.Ref, Schema: o.plan.Schema, Marked: o.plan.Marked, Desired: o.plan.Packed(), Revision: o.plan.Revision}
}

// summary is what is known of it beside its fields, the zero value if it does not exist.
func (o *object) summary() Summary {
	summary, _ := o.observed.Summary.(Summary)
	return summary
}

// observe takes over what observers see of it.
func (o *object) observe(seen observer.Observation) {
	o.observed = seen
	if seen.Err != nil {
		o.fail(seen.Err)
	}
	o.hold = o.holdFor(o.summary().Hold)
	o.observed.Stale = seen.Stale || seen.Exists() && o.mayRelease()
}

// mayRelease reports whether fields of a former spec may be left: it changed while no agent
// watched, or could not be carried out. Observers do not see what has left the spec; after
// a change that this process has seen, they read the object anew, but only once.
func (o *object) mayRelease() bool {
	return (o.setting.mayHaveMissed || o.former.Reason != "") && o.formerEntry() != nil
}

// formerEntry is what the document last_observed has of it.
func (o *object) formerEntry() map[string]any {
	return plan.EntryOf(o.setting.lastObserved.Objects(), o.plan.Manifest(), o.setting.home)
}

// learnedEntry is what the document status.learned has of it.
func (o *object) learnedEntry() map[string]any {
	return plan.EntryOf(o.setting.learned, o.plan.Manifest(), o.setting.home)
}

// holdFor is what the status keeps of a hold that the object asks for.
func (o *object) holdFor(asked string) *application.Hold {
	_, hold := pacing.HeldUntil(o.setting.wishes, o.former.Hold, asked, o.setting.maxHold, o.setting.now)
	return hold
}

// fail sets the verdict on an error.
func (o *object) fail(err error) { o.verdict = verdictOn(err, o.setting.now) }

// failWrite sets the verdict on an error of a write, and counts it.
func (o *object) failWrite(err error) {
	o.fail(err)
	o.countFailure()
}

// countFailure counts a write that failed, with the verdict on it.
func (o *object) countFailure() {
	o.memory.failures.Record(o.setting.now)
	o.memory.lastFailure = o.verdict
}

// rest reports whether an object is left alone for a while, because its writes failed
// several times in a row, and sets the verdict on one that is.
func (o *object) rest() (rests bool) {
	until := o.memory.failures.RestsUntil(o.setting.now)
	if until.IsZero() {
		return false
	}
	o.verdict = o.memory.lastFailure
	o.verdict.Err, o.verdict.Again = nil, until
	return true
}

// hasDrifted reports whether a difference is a drift, and not a change of the spec.
func (o *object) hasDrifted() bool {
	return o.isKnown && !o.setting.isNewSpec && status.WasCarriedOut(o.former.Reason)
}

// wasDeleted reports whether observers saw it disappear.
func (o *object) wasDeleted() bool { return !o.observed.Seen.IsZero() }

// took is the time since the event that the loop acts on, 0 without one.
func (o *object) took(now time.Time) time.Duration {
	if o.observed.Seen.IsZero() {
		return 0
	}
	return now.Sub(o.observed.Seen)
}

// isProved reports whether the live object is the one that proved to be ours before.
func (o *object) isProved(live map[string]any) bool {
	return o.memory.proved != "" && uidOf(live) == o.memory.proved
}

// take takes over the object as the API server has it now, and learns from it (step 6).
func (o *object) take(live map[string]any) {
	o.observed.Projection = manifest.Pack(o.plan.Schema.Project(o.plan.Desired(), live))
	o.observed.Summary = Summarise(live)
	if err := o.plan.Learn(live); err != nil {
		o.fail(err)
	}
}

// fights describes the fights about it, "" if there are none.
func (o *object) fights() string {
	ongoing, _ := o.memory.fights.Ongoing(o.setting.now)
	return status.FightsText(ongoing)
}

func pathsOf(differences schema.Differences) []schema.Path {
	paths := make([]schema.Path, 0, len(differences))
	for _, difference := range differences {
		paths = append(paths, difference.Path)
	}
	return paths
}

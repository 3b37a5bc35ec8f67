package reconcile

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"time"

	"github.com/krake-observer/krake-observer/internal/health"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// inputs has the common inputs of the decisions on all objects of a pass. It does not change
// during the pass.
type inputs struct {
	now time.Time
	// enforces reports whether the loop may write to the target.
	enforces bool
	settings application.Settings
	// isNewSpec reports that the objects have not been brought to this spec before. mayHaveMissed
	// reports that this process did not watch them since they matched the former spec.
	isNewSpec, mayHaveMissed bool
	maxHold                  time.Duration
	fieldManager             string
	// annotations are the user's settings.
	annotations map[string]string
	// Documents of the Application at the start of the pass.
	lastObserved application.Published
	learned      []map[string]any
	home         string
}

// object is one object of an Application in one pass: its desired state, its observation, and the
// findings.
type object struct {
	inputs *inputs
	memory *objectMemory
	plan   plan.Object
	// former is the object's entry in the status at the start of the pass. isKnown reports that
	// there was one.
	former  application.ObjectStatus
	isKnown bool
	// sources are the Secrets with the values of this one, nil for an object that has none. Such a Secret is not watched, see [filler].
	sources []string
	// redefinitions is how often a definition of the kind's API group has changed.
	redefinitions int

	observed observer.Observation
	hold     *application.Hold
	verdict  status.Verdict
	// ended is the end of an object that is gone because it had finished, nil if it exists or is missing.
	ended *application.Ended
	// isUnclaimed reports that the hub has not recorded it in the inventory yet.
	isUnclaimed bool
	// isSettled reports that the object on the target matches the spec.
	isSettled bool
	// part is the published part of an object that matches the spec only in part.
	part map[string]any
}

// target is the target of the observers.
func (o *object) target() observer.Target {
	return observer.Target{Ref: o.plan.Ref, Schema: o.plan.Schema, Marked: o.plan.Marked, Desired: o.plan.Packed(), Revision: o.plan.Revision}
}

// exists reports whether the object exists, as far as it was observed or written.
func (o *object) exists() bool { return o.observed.Exists() || len(o.observed.Projection) > 0 }

// summary is the observed [Summary] of the object, the zero value if it does not exist.
func (o *object) summary() Summary {
	if !o.exists() {
		return Summary{}
	}
	return o.lastSummary()
}

func (o *object) lastSummary() Summary {
	summary, _ := o.observed.Summary.(Summary)
	return summary
}

// health is the health of the object, the zero value if it is missing.
func (o *object) health() health.Health {
	if o.ended != nil {
		return health.Ended(health.State(o.ended.State))
	}
	return o.summary().Health
}

// endOf returns the end of an object that is gone because it had finished, nil if it exists or is missing. The
// record is valid for the manifest that the object was made of. Without a record, this process has seen the end.
func (o *object) endOf() *application.Ended {
	former, last := o.former.Ended, o.lastSummary().End
	switch {
	case o.observed.Exists():
	case former != nil && former.Manifest == o.digest():
		return former
	case former == nil && last != "" && o.isKnown && !o.inputs.isNewSpec && o.former.Reason == "":
		return o.ending(last)
	}
	return nil
}

// end returns the record of the object's end, nil if it has not ended.
func (o *object) end() *application.Ended {
	last := o.summary().End
	switch {
	case o.ended != nil:
		return o.ended
	case o.observed.Err != nil, last != "" && !o.isSettled: // made of a former manifest
		return o.former.Ended
	case last != "":
		return o.ending(last)
	}
	return nil
}

func (o *object) ending(state health.State) *application.Ended {
	return &application.Ended{Manifest: o.digest(), State: application.State(state)}
}

func (o *object) digest() string {
	digest, err := plan.DigestOf(o.plan.Manifest())
	if err != nil { // impossible: a manifest is JSON
		return ""
	}
	return digest
}

// observe records an observation.
func (o *object) observe(seen observer.Observation) {
	o.observed = seen
	if seen.Err != nil {
		o.fail(seen.Err)
	}
	if seen.Exists() && !o.isOurs(seen) {
		// The status must not show what a foreign object contains, and its health is nothing that it knows.
		o.observed.Projection, o.observed.Summary = nil, Summary{Health: health.Health{Status: health.StatusUnknown}}
	}
	o.hold = o.holdFor(o.summary().Hold)
	o.observed.Stale = seen.Stale || seen.Exists() && o.mayRelease()
	if seen.Err == nil {
		o.ended = o.endOf()
	}
}

// isOurs reports whether an observed object has our marks, or had them before.
func (o *object) isOurs(seen observer.Observation) bool {
	return o.memory.proved == seen.UID || string(o.lastSummary().OwnerUID) == o.plan.Marks().Annotations[application.OwnerUIDAnnotation]
}

// mayRelease reports whether fields of a former spec may remain. Either it changed while no agent
// watched, or the agent could not carry it out. Observers ignore fields that have left the spec.
// After a change that this process has seen, they read the object again, but only once.
func (o *object) mayRelease() bool {
	return (o.inputs.mayHaveMissed || o.former.Reason != "") && o.formerEntry() != nil
}

// formerEntry returns the object's entry in the document last_observed.
func (o *object) formerEntry() map[string]any {
	return plan.EntryOf(o.inputs.lastObserved.Objects(), o.plan.Manifest(), o.inputs.home)
}

// learnedEntry returns the object's entry in the document status.learned.
func (o *object) learnedEntry() map[string]any {
	return plan.EntryOf(o.inputs.learned, o.plan.Manifest(), o.inputs.home)
}

// holdFor returns the status entry for a hold that the object requests.
func (o *object) holdFor(asked string) *application.Hold {
	_, hold := pacing.HeldUntil(o.inputs.settings, o.former.Hold, asked, o.inputs.maxHold, o.inputs.now)
	return hold
}

// fail sets the verdict on an error.
func (o *object) fail(err error) { o.verdict = verdictOn(err, o.inputs.now) }

// failWrite counts a failed write, and sets the verdict on it.
func (o *object) failWrite(err error) {
	o.fail(err)
	o.countFailure()
}

// countFailure counts a failed write, with the verdict on it.
func (o *object) countFailure() {
	o.memory.failures.Record(o.inputs.now)
	o.memory.lastFailure = o.verdict
}

// rest reports whether the loop pauses for an object, because several writes failed in a row. It
// then sets the verdict.
func (o *object) rest() (rests bool) {
	until := o.memory.failures.RestsUntil(o.inputs.now)
	if until.IsZero() {
		return false
	}
	o.verdict = o.memory.lastFailure
	o.verdict.Err, o.verdict.Again = nil, until
	return true
}

// hasDrifted reports whether a difference is a drift, and not a change of the spec.
func (o *object) hasDrifted() bool {
	return o.isKnown && !o.inputs.isNewSpec && status.WasCarriedOut(o.former.Reason)
}

// wasDeleted reports whether observers saw the deletion of the object.
func (o *object) wasDeleted() bool { return !o.observed.Seen.IsZero() }

// took is the time since the event that started the pass, 0 without one.
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

// take records the object as the API server returned it, and learns from it (step 6).
func (o *object) take(live map[string]any) {
	o.observed.Projection = manifest.Pack(o.plan.Schema.Project(o.plan.Desired(), live))
	o.observed.Summary = Summarise(live)
	if err := o.plan.Learn(live); err != nil {
		o.fail(err)
	}
}

// contention describes the contention about the object, "" if there are none.
func (o *object) contention() string {
	ongoing, _ := o.memory.contentions.Ongoing(o.inputs.now)
	return status.ContentionText(ongoing)
}

// circumstances identifies what the answer to a write depends on, as far as the loop sees it: the
// live object without its status and the bookkeeping of writes, the definition of its kind, and the
// user's settings. Without refusals, it is not needed.
func (o *object) circumstances(live map[string]any) string {
	content := maps.Clone(live)
	delete(content, "status")
	if metadata, ok := live["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, name := range []string{"resourceVersion", "generation", "managedFields"} {
			delete(metadata, name)
		}
		content["metadata"] = metadata
	}
	digest := sha256.New()
	if err := json.NewEncoder(digest).Encode([]any{content, o.redefinitions, o.inputs.annotations}); err != nil {
		return versionOf(live) // not JSON, which no object has
	}
	return string(digest.Sum(nil))
}

func pathsOf(differences schema.Differences) []schema.Path {
	paths := make([]schema.Path, 0, len(differences))
	for _, difference := range differences.Details() {
		paths = append(paths, difference.Path)
	}
	return paths
}

package reconcile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// decision is the result of a repair for a live object.
type decision struct {
	// before is the live object.
	before map[string]any
	// marksOnly reports that the patch writes only our marks. The next decision follows their
	// write. The policy of the agents' ConfigMaps allows no other write to an object without marks.
	marksOnly bool
	// The patch repairs drift. It leaves unrepaired, for the reason of the verdict.
	drift, unrepaired schema.Differences
	// removed are those of drift that remove a value that is not observed, see [exclusion].
	removed schema.Differences
	patch   schema.Patch
	culprit blame.Culprit
	verdict status.Verdict
}

// repair makes one object match the desired state. It decides on the whole live object, and again
// if that has changed in the meantime.
type repair struct {
	object *object
	// live is the last known object, or nil to read it.
	live map[string]any
	// tries is how many writes may follow.
	tries int
	// refusedFields are the fields whose learned values the API server refuses. wasDesired is the
	// desired state with these values.
	refusedFields [][]string
	wasDesired    map[string]any
	// displaces reports that elements that a list lacks replace unobserved elements. hasDisplaced
	// reports that this was tried.
	displaces, hasDisplaced bool
	// isWhole reports that absent objects are created from the whole desired state.
	isWhole bool
	// ladder is what dry runs have shown after a refusal.
	ladder ladder
	// rounds counts the patches that were too small for the whole repair, and refusals those that were refused.
	rounds, refusals int
}

// restart begins again with the object as it is after a write, or with nil to read it.
func (r *repair) restart(live map[string]any) {
	*r = repair{object: r.object, live: live, tries: r.tries - 1}
}

// decide returns the decision on the live object, with the patch.
func (r *repair) decide(live map[string]any) decision {
	d := decision{before: live}
	fields, elements := r.released(live)
	compared := r.compare(live, elements).Drift()
	if r.isWhole {
		compared, _ = r.object.plan.Marked.Whole(r.object.plan.MarkedDesired(), live, compared)
	}
	differences := slices.Concat(r.forgotten(live), fields, compared)
	refusals := r.object.memory.refused
	if refusals != nil {
		refusals.Renew(r.object.circumstances(live), r.object.inputs.now)
	}
	var refused pacing.Refusal
	d.drift, d.unrepaired, refused = refusals.Split(differences)
	if len(d.unrepaired) > 0 {
		d.verdict = status.Verdict{Reason: refused.Reason, Message: refused.Message, Fields: pathsOf(d.unrepaired), Again: refusals.Until()}
	}
	if len(d.drift) > 0 {
		if len(r.ladder.exclusions) > 0 && r.ladder.circumstances == r.object.circumstances(live) {
			d.removed = r.ladder.removals(d.drift)
		}
		d.drift = slices.Concat(d.removed, d.drift) // no index moves
		d.culprit = blame.Of(live, pathsOf(d.drift), r.object.inputs.fieldManager)
		r.spare(&d)
	}
	d.patch = d.drift.Patch()
	return d
}

// decideMarks returns the patch that writes only our marks. If a competing writer removes them repeatedly, the
// patch is empty for a while.
func (r *repair) decideMarks(live map[string]any) decision {
	o := r.object
	lost := o.plan.MarksOnly().Compare(o.plan.MarkedDesired(), live).Drift()
	d := decision{before: live, culprit: blame.Of(live, pathsOf(lost), o.inputs.fieldManager)}
	until := o.memory.contentions.PausedUntil(d.contentions(lost), o.inputs.now)
	if o.isProved(live) && !until.IsZero() { // contention about a foreign object was about its predecessor
		d.unrepaired, d.verdict = lost, status.Verdict{Reason: status.Contended, Fields: pathsOf(lost), Again: until}
		return d
	}
	d.marksOnly, d.drift, d.patch = true, lost, lost.Patch()
	return d
}

func (r *repair) compare(live map[string]any, released schema.Differences) schema.Differences {
	if r.displaces {
		return r.object.plan.Marked.Displace(r.object.plan.MarkedDesired(), live, released...)
	}
	return r.object.plan.Marked.Compare(r.object.plan.MarkedDesired(), live, released...)
}

// released returns the fields and the list elements that have left manifest and schema, and still have our values.
func (r *repair) released(live map[string]any) (fields, elements schema.Differences) {
	o := r.object
	if !o.inputs.isNewSpec && o.former.Reason == "" {
		return nil, nil
	}
	former := o.formerEntry()
	if former == nil {
		return nil, nil
	}
	desired, learned := o.plan.Desired(), o.learnedEntry()
	return o.plan.Schema.Valued(desired, learned).Released(desired, former, learned, live)
}

// forgotten returns the removals of learned values that the API server now refuses.
func (r *repair) forgotten(live map[string]any) schema.Differences {
	var removals schema.Differences
	for _, field := range r.refusedFields {
		_, found := r.object.plan.Schema.Forget(r.wasDesired, r.object.plan.Manifest(), live, field...)
		removals = append(removals, found...)
	}
	return removals
}

// spare leaves the drift unrepaired if the Application or the object requests it. It also does so
// for a while if a competing writer restores the drift each time. Our marks are restored on a held object too,
// because observers do not see an object without its label.
func (r *repair) spare(d *decision) {
	o := r.object
	held, _ := pacing.HeldUntil(o.inputs.settings, o.hold, holdOf(d.before), o.inputs.maxHold, o.inputs.now)
	paused := o.memory.contentions.PausedUntil(d.contentions(d.drift), o.inputs.now)
	marks, fields := plan.SplitMarks(d.drift)
	var spared status.Verdict
	switch {
	case !o.inputs.enforces:
		spared.Reason = status.ObserveMode
		marks, fields = nil, d.drift
	case !paused.IsZero():
		spared.Reason, spared.Again = status.Contended, paused
		marks, fields = nil, d.drift
	case !held.IsZero():
		spared = heldVerdict(held)
	default:
		return
	}
	if len(fields) > 0 {
		d.verdict, d.verdict.Fields = spared, pathsOf(fields)
	}
	d.drift, d.unrepaired, d.removed = marks, slices.Concat(d.unrepaired, fields), nil
}

func heldVerdict(until time.Time) status.Verdict {
	return status.Verdict{Reason: status.Held, Message: "held until " + until.UTC().Format(time.RFC3339), Again: until}
}

// contentions returns the fields that differ, each with the manager that changed it.
func (d decision) contentions(differences schema.Differences) []pacing.Contention {
	about := make([]pacing.Contention, 0, len(differences))
	for _, difference := range differences {
		about = append(about, pacing.Contention{Field: difference.Path.String(), Writer: d.culprit.Name()})
	}
	return about
}

// forgetRefused forgets the learned values at the fields that the API server refused. It reports
// whether there were any.
func (r *repair) forgetRefused(d decision, fields []string) (some bool) {
	if r.wasDesired == nil {
		r.wasDesired = r.object.plan.Desired()
	}
	for _, field := range fields {
		path, _ := schema.ParsePath(field) // no learned value is at an empty path
		forgot, err := r.object.plan.ForgetRefused(d.before, path.Names())
		if err != nil {
			r.object.fail(err)
			return false
		}
		if forgot {
			r.refusedFields, some = append(r.refusedFields, path.Names()), true
		}
	}
	return some
}

// mayDisplace reports whether elements that a list lacks can replace unobserved elements, and that
// was not tried yet.
func (r *repair) mayDisplace(d decision) bool {
	displacing := r.object.plan.Marked.Displace(r.object.plan.MarkedDesired(), d.before)
	return !r.hasDisplaced && slices.ContainsFunc(displacing, func(difference schema.Difference) bool {
		return difference.Displaces && plan.IsAmong(d.drift, difference.Path)
	})
}

// mayBeWhole reports whether an absent object can be created from the whole desired state, and that was not tried yet.
func (r *repair) mayBeWhole(d decision) bool {
	if r.isWhole {
		return false
	}
	_, some := r.object.plan.Marked.Whole(r.object.plan.MarkedDesired(), d.before, d.drift)
	return some
}

// remaining returns the differences that a patch should have repaired and did not.
func (r *repair) remaining(d decision, after map[string]any) schema.Differences {
	return slices.DeleteFunc(r.object.plan.Marked.Compare(r.object.plan.MarkedDesired(), after).Drift(), func(one schema.Difference) bool {
		return slices.ContainsFunc(d.unrepaired, func(other schema.Difference) bool { return slices.Equal(other.Path, one.Path) })
	})
}

// part returns the document entry of an object that matches the spec only in part. It has that part
// as it was written, and the former entry for the other fields. Without the part, a spec that
// withdraws the refused fields would leave it on the object.
func (r *repair) part(d decision, after map[string]any) map[string]any {
	o := r.object
	entry := o.plan.Schema.ObservedPart(o.plan.Desired())
	for _, form := range o.plan.Schema.Forms(o.plan.Desired(), plan.WithoutMarks(after)) {
		if !form.IsAddition() {
			put(entry, form.Path, nil)
		}
	}
	former := o.formerEntry()
	for _, difference := range d.unrepaired {
		fields := difference.Path.Names()
		value, found, err := unstructured.NestedFieldCopy(former, fields...)
		if found && err == nil && len(fields) == len(difference.Path) {
			put(entry, difference.Path, value)
		}
	}
	return entry
}

// put sets a value at the path. It creates missing objects on the way, but no lists.
func put(value any, path schema.Path, leaf any) {
	last := len(path) == 1
	switch parent := value.(type) {
	case map[string]any:
		name := path[0].Field
		if last {
			parent[name] = leaf
			return
		}
		if parent[name] == nil && leaf != nil {
			parent[name] = map[string]any{}
		}
		put(parent[name], path[1:], leaf)
	case []any:
		if at := path[0].Index; at >= 0 && at < len(parent) {
			if last {
				parent[at] = leaf
				return
			}
			put(parent[at], path[1:], leaf)
		}
	}
}

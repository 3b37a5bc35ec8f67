package reconcile

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/apierror"
	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/pacing"
	"github.com/krake-observer/krake-observer/pkg/plan"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// decision is what a repair decided on a live object.
type decision struct {
	// before is the live object.
	before map[string]any
	// marksOnly: the patch writes our marks and nothing else, and then all is decided anew.
	// The policy of the agents' ConfigMaps allows nothing else to an object without marks.
	marksOnly bool
	// drift is repaired by the patch, unrepaired is left for the reason of the verdict.
	drift, unrepaired schema.Differences
	patch             schema.Patch
	culprit           blame.Culprit
	verdict           status.Verdict
}

// repair is how one object is brought to what is desired. It decides on the whole live
// object, and anew if that has changed meanwhile.
type repair struct {
	object *object
	// refusedFields are those at which the API server refuses learned values, wasDesired is
	// the desired state with them.
	refusedFields [][]string
	wasDesired    map[string]any
	// displaces: elements that a list lacks replace elements that are not observed.
	// hasDisplaced: that was tried.
	displaces, hasDisplaced bool
	// rounds counts the patches that did not hold the whole repair.
	rounds int
}

// decide returns the patch that the live object needs.
func (r *repair) decide(live map[string]any) decision {
	d := decision{before: live}
	differences := slices.Concat(r.forgotten(live), r.released(live), r.compare(live).Drift())
	var refused string
	d.drift, d.unrepaired, refused = r.object.memory.refused.Split(differences)
	if len(d.unrepaired) > 0 {
		d.verdict = status.Verdict{Reason: status.Invalid, Message: refused, Fields: pathsOf(d.unrepaired)}
	}
	if len(d.drift) > 0 {
		d.culprit = blame.Of(live, pathsOf(d.drift), r.object.setting.fieldManager)
		r.spare(&d)
	}
	d.patch = d.drift.Patch()
	return d
}

// decideMarks returns the patch that puts our marks on the object, and nothing else: none
// for a while, if a rival removes them again and again.
func (r *repair) decideMarks(live map[string]any) decision {
	o := r.object
	lost := o.plan.MarksOnly().Compare(o.plan.MarkedDesired(), live).Drift()
	d := decision{before: live, culprit: blame.Of(live, pathsOf(lost), o.setting.fieldManager)}
	if until := o.memory.fights.PausedUntil(d.rivalries(lost), o.setting.now); !until.IsZero() {
		d.unrepaired, d.verdict = lost, status.Verdict{Reason: status.Contended, Fields: pathsOf(lost), Again: until}
		return d
	}
	d.marksOnly, d.drift, d.patch = true, lost, lost.Patch()
	return d
}

func (r *repair) compare(live map[string]any) schema.Differences {
	if r.displaces {
		return r.object.plan.Marked.Displace(r.object.plan.MarkedDesired(), live)
	}
	return r.object.plan.Marked.Compare(r.object.plan.MarkedDesired(), live)
}

// released are the fields that have left manifest and schema, and still have our values.
func (r *repair) released(live map[string]any) schema.Differences {
	o := r.object
	if !o.setting.isNewSpec && o.former.Reason == "" {
		return nil
	}
	former := o.formerEntry()
	if former == nil {
		return nil
	}
	return o.plan.Schema.Released(o.plan.Desired(), former, o.learnedEntry(), live)
}

// forgotten takes learned values off the object that the API server refuses by now.
func (r *repair) forgotten(live map[string]any) schema.Differences {
	var removals schema.Differences
	for _, field := range r.refusedFields {
		_, found := r.object.plan.Schema.Forget(r.wasDesired, r.object.plan.Manifest(), live, field...)
		removals = append(removals, found...)
	}
	return removals
}

// spare leaves the drift unrepaired if the Application or the object asks for it, and for a
// while if a rival restores it each time. Our marks are put back on a held object as well:
// observers do not see an object without its label.
func (r *repair) spare(d *decision) {
	o := r.object
	held, _ := pacing.HeldUntil(o.setting.wishes, o.hold, holdOf(d.before), o.setting.maxHold, o.setting.now)
	paused := o.memory.fights.PausedUntil(d.rivalries(d.drift), o.setting.now)
	marks, fields := plan.SplitMarks(d.drift)
	var spared status.Verdict
	switch {
	case !o.setting.enforces:
		spared.Reason = status.Observed
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
	d.drift, d.unrepaired = marks, slices.Concat(d.unrepaired, fields)
}

func heldVerdict(until time.Time) status.Verdict {
	return status.Verdict{Reason: status.Held, Message: "held until " + until.UTC().Format(time.RFC3339), Again: until}
}

// rivalries are fields that differ, with the manager that changed them.
func (d decision) rivalries(differences schema.Differences) []pacing.Rivalry {
	about := make([]pacing.Rivalry, 0, len(differences))
	for _, difference := range differences {
		about = append(about, pacing.Rivalry{Field: difference.Path.String(), Rival: d.culprit.Name()})
	}
	return about
}

// forgetRefused gives up the learned values at the fields that the API server named when it
// refused a patch, and reports whether there were any.
func (r *repair) forgetRefused(d decision, fields []string) (some bool) {
	if r.wasDesired == nil {
		r.wasDesired = r.object.plan.Desired()
	}
	for _, field := range fields {
		names := apierror.Names(field)
		forgot, err := r.object.plan.ForgetRefused(d.before, names)
		if err != nil {
			r.object.fail(err)
			return false
		}
		if forgot {
			r.refusedFields, some = append(r.refusedFields, names), true
		}
	}
	return some
}

// mayDisplace reports whether elements that a list lacks can replace elements that are not
// observed, and that was not tried yet.
func (r *repair) mayDisplace(d decision) bool {
	displacing := r.object.plan.Marked.Displace(r.object.plan.MarkedDesired(), d.before)
	return !r.hasDisplaced && slices.ContainsFunc(displacing, func(difference schema.Difference) bool {
		return difference.Displaces() && plan.IsAmong(d.drift, difference.Path)
	})
}

// remaining are the differences that a patch should have repaired, and did not.
func (r *repair) remaining(d decision, after map[string]any) schema.Differences {
	return slices.DeleteFunc(r.object.plan.Marked.Compare(r.object.plan.MarkedDesired(), after).Drift(), func(one schema.Difference) bool {
		return slices.ContainsFunc(d.unrepaired, func(other schema.Difference) bool { return slices.Equal(other.Path, one.Path) })
	})
}

// part returns what is published of an object of which only a part is as the spec says:
// that part, as it was written, and for the rest what was published before. Without it, a
// spec that takes back what was refused would leave the part behind.
func (r *repair) part(d decision, after map[string]any) map[string]any {
	o := r.object
	entry := o.plan.Schema.ObservedPart(o.plan.Desired())
	for _, form := range o.plan.Schema.Forms(o.plan.Desired(), plan.WithoutMarks(after)) {
		put(entry, form.Path, nil)
	}
	former := o.formerEntry()
	for _, difference := range d.unrepaired {
		fields := plan.FieldsOf(difference.Path)
		value, found, err := unstructured.NestedFieldCopy(former, fields...)
		if found && err == nil && len(fields) == len(difference.Path) {
			put(entry, difference.Path, value)
		}
	}
	return entry
}

// put puts a value at the path. It makes objects on the way, and no lists.
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

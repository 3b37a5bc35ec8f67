package reconcile

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// manyOperations is of how many operations a patch may be that does not hold all
// there is to mend: an API server takes no more in one request.
const manyOperations = 5_000

// manyRounds is how many such patches are made in one pass: whoever writes all of
// it back would keep the pass for ever.
const manyRounds = 20

// repair is how one object is brought to what is desired. It is decided on the
// whole live object, and anew if that has changed meanwhile.
type repair struct {
	*pass

	i       int
	planned *resource
	known   *objectMemory
	// refusedFields are those at which the API server refuses what was learned, and
	// wasDesired is the desired state with that.
	refusedFields [][]string
	wasDesired    map[string]any
	// displaces tells that what a list lacks takes the place of what nobody asked for,
	// and displaced that this was tried.
	displaces, displaced bool
	// rounds counts the patches that did not hold all there is to mend.
	rounds int

	// What was decided, on the object as it was before.
	before map[string]any
	// marks: nothing but our marks is written, and then all is decided anew. The
	// policy of the agents' ConfigMaps allows nothing else to an object without.
	marks bool
	// drift is what is mended, left what is not.
	drift, left schema.Differences
	patch       schema.Patch
	culprit     blame.Culprit
	verdict     verdict
}

// nothing is the repair of an object that is only looked at.
func nothing(map[string]any) (schema.Patch, error) { return nil, nil }

// mend patches the observed fields that differ, and nothing else. live is the
// object as it was last seen, nil to read it.
func (p *pass) mend(ctx context.Context, i int, live map[string]any, tries int) {
	p.try(ctx, p.newRepair(i), live, tries)
}

func (p *pass) newRepair(i int) *repair {
	return &repair{pass: p, i: i, planned: &p.planned[i], known: p.memory.object(p.planned[i].ID)}
}

func (p *pass) try(ctx context.Context, r *repair, live map[string]any, tries int) {
	if tries == 0 {
		p.verdicts[r.i] = verdict{reason: reasonError, message: "somebody else writes it as fast as this agent: it is tried again", again: p.now.Add(time.Second)}
		return
	}
	if p.rests(r.i) {
		return
	}
	after, err := p.target.Patch(ctx, r.planned.Ref, live, func(live map[string]any) (schema.Patch, error) { return r.decide(ctx, live) })
	switch {
	case apierrors.IsNotFound(err):
		p.create(ctx, r.i, tries-1) // it went meanwhile
	case apierrors.IsInvalid(err):
		p.invalid(ctx, r, err, tries)
	case err != nil:
		p.failWrite(r.i, err)
		p.failedToMend(r)
	case r.marks:
		p.marked(ctx, r, after, tries)
	case len(r.patch) >= manyOperations && version(after) != version(r.before):
		p.rest(ctx, r, after, tries)
	default:
		if p.patched(r, after, tries > 1) {
			p.mend(ctx, r.i, after, tries-1)
		}
	}
}

// rest mends what one patch could not hold: each time there is less.
func (p *pass) rest(ctx context.Context, r *repair, after map[string]any, tries int) {
	if r.rounds++; r.rounds == manyRounds {
		tries = 0
	}
	p.try(ctx, r, after, tries)
}

// failedToMend reports that a repair could not be made.
func (p *pass) failedToMend(r *repair) {
	if len(r.patch) > 0 && p.isDrift(r.i) {
		p.report(r.i, Outcome{Action: Failed, Object: r.planned.ID, Paths: pathsOf(r.drift), Reason: p.verdicts[r.i].reason})
	}
}

// decide gives the patch that the live object needs.
func (r *repair) decide(ctx context.Context, live map[string]any) (schema.Patch, error) {
	r.before, r.marks, r.drift, r.left, r.patch, r.verdict = live, false, nil, nil, nil, verdict{}
	unmarked, err := r.own(ctx, live)
	if err != nil {
		return nil, err
	}
	r.holds[r.i] = r.heldAs(r.i, holdOf(live))
	if unmarked && r.enforces() {
		r.mark(live)
		return r.patch, r.claimAdopted(ctx, live)
	}
	differences := slices.Concat(r.forgotten(live), r.released(live), r.compare(live).Drift())
	var refused string
	r.drift, r.left, refused = r.known.refused.split(differences)
	if len(r.left) > 0 {
		r.verdict = verdict{reason: reasonInvalid, message: refused, fields: pathsOf(r.left)}
	}
	if len(r.drift) > 0 {
		r.culprit = blame.Of(live, pathsOf(r.drift), r.FieldManager)
		r.spare(live)
	}
	r.patch = r.drift.Patch()
	return r.patch, nil
}

func (r *repair) compare(live map[string]any) schema.Differences {
	if r.displaces {
		return r.planned.Marked.Displace(r.planned.marked.look(), live)
	}
	return r.planned.Marked.Compare(r.planned.marked.look(), live)
}

// released are the fields that have left manifest and schema, and still are as
// we have set them.
func (r *repair) released(live map[string]any) schema.Differences {
	if r.app.Status.ObservedSpec == r.spec && r.formerReason(r.i) == "" {
		return nil
	}
	former := r.entryOf(r.app.LastObserved.Objects(), r.i)
	if former == nil {
		return nil
	}
	return r.planned.Schema.Released(r.planned.desired(), former, r.entryOf(r.app.Learned, r.i), live)
}

// forgotten takes off the object what was learned and is refused by now.
func (r *repair) forgotten(live map[string]any) schema.Differences {
	var removals schema.Differences
	for _, field := range r.refusedFields {
		_, found := r.planned.Schema.Forget(r.wasDesired, r.planned.manifest(), live, field...)
		removals = append(removals, found...)
	}
	return removals
}

// spare leaves the drift to others where the Application or the object says so,
// and for a while where somebody brings it back each time. Our marks are put
// back on a held object all the same: without its label it would be out of sight.
func (r *repair) spare(live map[string]any) {
	held, _ := heldUntil(r.app.Wishes, r.holds[r.i], holdOf(live), r.MaxHold, r.now)
	paused := r.known.fights.pausedUntil(r.rivalries(r.drift), r.now)
	marks, fields := splitMarks(r.drift)
	var spared verdict
	switch {
	case !r.enforces():
		spared.reason = reasonObserved
		marks, fields = nil, r.drift
	case !paused.IsZero():
		spared.reason, spared.again = reasonContended, paused
		marks, fields = nil, r.drift
	case !held.IsZero():
		spared.reason, spared.again = reasonHeld, held
		spared.message = "held until " + held.UTC().Format(time.RFC3339)
	default:
		return
	}
	if len(fields) > 0 {
		r.verdict, r.verdict.fields = spared, pathsOf(fields)
	}
	r.drift, r.left = marks, slices.Concat(r.left, fields)
}

// rivalries are fields of the drift, with who changed them.
func (r *repair) rivalries(drift schema.Differences) []rivalry {
	rival := r.culprit.Name()
	about := make([]rivalry, 0, len(drift))
	for _, difference := range drift {
		about = append(about, rivalry{difference.Path.String(), rival})
	}
	return about
}

// patched takes note of what the API server made of a patch. What it wrote
// otherwise is its way to write the desired value: to send it again would be
// answered in the same way for ever.
//
// Another field that the answer has otherwise is none: it was not sent, and
// depends perhaps on one that was. As long as it may, it asks for another patch.
func (p *pass) patched(r *repair, after map[string]any, mayAgain bool) (again bool) {
	planned := r.planned
	r.known.failed = failures{}
	if planned.marks().Prove(after) { // one that is to be adopted is only looked at where nothing is written
		p.proved(r.i, after)
	}
	if len(r.patch) > 0 {
		p.told(r, after)
		var sent schema.Differences
		if mayAgain {
			sent = r.drift
		}
		if err := planned.accept(after, sent, r.left); err != nil {
			p.fail(r.i, err)
			return false
		}
	}
	p.verdicts[r.i] = r.verdict
	if r.verdict.reason != "" && len(r.left) > 0 {
		p.remember(r.i, drift{differences: r.left, culprit: blame.Of(r.before, pathsOf(r.left), p.FieldManager), verdict: r.verdict})
	}
	left := pathsOf(r.left)
	stays := planned.Marked.Compare(planned.marked.look(), after).Drift()
	stays = slices.DeleteFunc(stays, func(d schema.Difference) bool { return contains(left, d.Path) })
	if len(stays) > 0 && r.verdict.reason == "" {
		p.verdicts[r.i] = verdict{reason: reasonIneffective, fields: pathsOf(stays),
			message: "the repair had no lasting effect: either the desired state is not legal itself, or the API server does not keep it: compare them (kubectl krake diff), and correct the manifest, or leave the field out of the observer schema"}
	}
	p.mended[r.i] = p.verdicts[r.i].reason == ""
	if _, fields := splitMarks(r.drift); len(fields) > 0 && len(r.patch) > 0 {
		p.partly[r.i] = r.partly(after)
	}
	p.took(r.i, after)
	return mayAgain && len(r.patch) > 0 && r.verdict.reason == "" &&
		slices.ContainsFunc(stays, func(d schema.Difference) bool { return !isAmong(r.drift, d.Path) })
}

// partly gives what is published of an object of which a part only is as the spec
// says: that part, as it was written, and for the rest what was published before.
// Otherwise a spec that takes back what was refused would leave the part behind.
func (r *repair) partly(after map[string]any) map[string]any {
	entry := r.planned.Schema.ObservedPart(r.planned.desired())
	for _, form := range r.planned.Schema.Forms(r.planned.desired(), withoutMarks(after)) {
		put(entry, form.Path, nil)
	}
	former := r.entryOf(r.app.LastObserved.Objects(), r.i)
	for _, difference := range r.left {
		fields := fieldsOf(difference.Path)
		value, found, err := unstructured.NestedFieldCopy(former, fields...)
		if found && err == nil && len(fields) == len(difference.Path) {
			put(entry, difference.Path, value)
		}
	}
	return entry
}

// put puts a value at the path. Objects on the way are made, lists are not.
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

// told reports a patch: the repair of a drift, or a change of the spec.
func (p *pass) told(r *repair, after map[string]any) {
	outcome := Outcome{Action: Configured, Object: r.planned.ID, Paths: pathsOf(r.drift)}
	if p.isDrift(r.i) {
		outcome.Action, outcome.Culprit, outcome.Took = Reverted, r.culprit, p.sinceSeen(r.i)
		p.reverted = true
		outcome.NoOp = version(after) == version(r.before)
		r.known.fights.repaired(r.rivalries(r.drift), p.now)
		p.remember(r.i, drift{differences: r.drift, culprit: r.culprit, repaired: Reverted, took: outcome.Took})
	}
	p.report(r.i, outcome)
}

// isDrift tells a drift from a change of the spec that is carried out.
func (p *pass) isDrift(i int) bool {
	former, known := p.former.Object(p.planned[i].ID)
	return known && p.former.ObservedSpec == p.spec && wasCarriedOut(former.Reason)
}

// wasCarriedOut tells of an object with that reason if the spec was brought to
// it: as far as that could be done, or others left it so.
func wasCarriedOut(reason string) bool {
	switch reason {
	case "", reasonContended, reasonHeld, reasonObserved, reasonInvalid, reasonIneffective:
		return true
	}
	return false
}

// invalid deals with a patch that the API server refuses for its values. A
// learned value that it will not have any more is forgotten. What a list lacks is
// put in the place of what nobody asked for, if there is such. What it names
// besides is left as it is until the spec changes or the object, and the rest is
// mended.
func (p *pass) invalid(ctx context.Context, r *repair, refusal error, tries int) {
	fields := causes(refusal)
	if p.forget(r, fields) {
		p.try(ctx, r, r.before, tries-1)
		return
	}
	if r.displaces = r.mayDisplace(); r.displaces {
		r.displaced = true
		p.try(ctx, r, r.before, tries)
		return
	}
	refused := blamed(r.drift, fields)
	if tries == 1 {
		refused = r.drift
	}
	if p.isDrift(r.i) { // whoever changes it again and again has us ask again and again
		r.known.fights.repaired(r.rivalries(refused), p.now)
	}
	r.known.refused.add(refused, told(refusal))
	p.try(ctx, r, r.before, max(tries-1, 1)) // if all was refused, nothing is written
}

// mayDisplace tells if something is left to try, by which nothing is lost that is
// observed.
func (r *repair) mayDisplace() bool {
	return !r.displaced && slices.ContainsFunc(r.planned.Marked.Displace(r.planned.marked.look(), r.before), func(d schema.Difference) bool {
		return d.Displaces() && isAmong(r.drift, d.Path)
	})
}

// forget forgets the learned values at the fields that the API server has named.
func (p *pass) forget(r *repair, fields []string) bool {
	if r.wasDesired == nil {
		r.wasDesired = r.planned.desired()
	}
	before := len(r.refusedFields)
	for _, field := range fields {
		forgotten, removals := r.planned.Schema.Forget(r.planned.desired(), r.planned.manifest(), r.before, names(field)...)
		if len(removals) == 0 || goFurther(pathsOf(removals), names(field)) {
			continue
		}
		r.refusedFields, r.planned.forgot = append(r.refusedFields, names(field)), true
		if err := r.planned.pin(forgotten); err != nil {
			p.fail(r.i, err)
			return false
		}
	}
	return len(r.refusedFields) > before
}

// goFurther tells if any path leads below the field: to refuse a spec as a whole
// is not to refuse each value that was learned in it.
func goFurther(paths []schema.Path, field []string) bool {
	return slices.ContainsFunc(paths, func(path schema.Path) bool { return len(fieldsOf(path)) > len(field) })
}

func pathsOf(differences schema.Differences) []schema.Path {
	paths := make([]schema.Path, 0, len(differences))
	for _, difference := range differences {
		paths = append(paths, difference.Path)
	}
	return paths
}

func contains(paths []schema.Path, path schema.Path) bool {
	return slices.ContainsFunc(paths, func(other schema.Path) bool { return slices.Equal(other, path) })
}

func version(live map[string]any) string {
	return (&unstructured.Unstructured{Object: live}).GetResourceVersion()
}

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// errForeign is the error of an object that belongs to no Application.
var errForeign = errors.New("the object exists and does not belong to this Application")

// ownedError is the error of an object that is another Application's.
type ownedError struct{ owner string }

func (e ownedError) Error() string { return "the object belongs to the Application " + e.owner }

// own finds out whose the live object is. It is ours if its annotations prove
// it; if they name us with the UID of a former Application of our name, as a
// restored backup does; or if it is the very object that has proved to be ours
// before, whose annotation somebody has removed. One that belongs to no
// Application is adopted where that is asked for.
func (r *repair) own(ctx context.Context, live map[string]any) (unmarked bool, err error) {
	owner, marked := application.OwnerOf(live)
	switch {
	case r.planned.marks().Prove(live), marked && owner == r.app.NamespacedName:
		return false, nil
	case r.isProved(live):
		return true, nil
	case marked && r.exists(ctx, owner):
		return false, fmt.Errorf("%w: %s", ownedError{owner.String()}, r.planned.ID)
	case !r.app.Wishes.Adopt:
		return false, fmt.Errorf("%w: %s", errForeign, r.planned.ID)
	}
	return true, nil
}

func (r *repair) isProved(live map[string]any) bool {
	return r.known.proved != "" && uidOf(live) == r.known.proved
}

// exists tells if an Application is there to own anything. One that is of another
// version, or cannot be read, is.
func (r *repair) exists(ctx context.Context, owner types.NamespacedName) bool {
	app, err := r.Applications.Get(ctx, owner)
	return err != nil || app != nil
}

// adoptedAmong gives those of the objects that were adopted, by whatever version
// of their API.
func adoptedAmong(ids, adopted []manifest.ID) []manifest.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id manifest.ID) bool { return !isAdopted(id, adopted) })
}

func isAdopted(id manifest.ID, adopted []manifest.ID) bool {
	return slices.ContainsFunc(adopted, func(other manifest.ID) bool { return sameObject(other, id) })
}

// proved takes note that an object is ours.
func (p *pass) proved(i int, live map[string]any) {
	p.memory.object(p.planned[i].ID).proved = uidOf(live)
}

// mark decides to put our marks on an object, and nothing else: not as often as
// somebody takes them off.
func (r *repair) mark(live map[string]any) {
	lost := r.planned.marksOnly().Compare(r.planned.marked.look(), live).Drift()
	r.culprit = blame.Of(live, pathsOf(lost), r.FieldManager)
	if until := r.known.fights.pausedUntil(r.rivalries(lost), r.now); !until.IsZero() {
		r.left, r.verdict = lost, verdict{reason: reasonContended, fields: pathsOf(lost), again: until}
		return
	}
	r.marks, r.drift, r.patch = true, lost, lost.Patch()
}

// claimAdopted writes that an object is about to be adopted, before it is: it is
// not deleted with the Application unless that is asked for.
func (r *repair) claimAdopted(ctx context.Context, live map[string]any) error {
	if len(r.patch) == 0 || r.isProved(live) || slices.Contains(r.app.Adopted, r.planned.ID) {
		return nil
	}
	adopted := r.app.Adopted
	r.app.Adopted = append(slices.Clone(adopted), r.planned.ID)
	if !slices.Contains(r.app.Inventory, r.planned.ID) {
		r.app.Inventory = append(slices.Clone(r.app.Inventory), r.planned.ID)
	}
	err := r.Applications.Update(ctx, r.app)
	if err != nil {
		r.app.Adopted = adopted // nothing may go by what is not stored
	}
	if unanswered(err) {
		return errUnclaimed // by the hub: nothing is wrong with the target
	}
	return err
}

// marked reports that an object has our marks now, or has them again, and mends
// the rest of it.
func (p *pass) marked(ctx context.Context, r *repair, after map[string]any, tries int) {
	outcome := Outcome{Action: Adopted, Object: r.planned.ID}
	if r.isProved(after) {
		outcome = Outcome{Action: Reverted, Object: r.planned.ID, Paths: pathsOf(r.drift), Took: p.sinceSeen(r.i)}
		r.known.fights.repaired(r.rivalries(r.drift), p.now)
	}
	if !r.planned.marks().Prove(after) {
		p.verdicts[r.i] = verdict{reason: reasonIneffective, fields: pathsOf(r.drift),
			message: "the API server, or a webhook there, does not keep the marks by which objects are known: have it leave labels and annotations of " + application.Domain + " alone"}
		return
	}
	p.proved(r.i, after)
	p.report(r.i, outcome)
	p.mend(ctx, r.i, after, tries-1)
}

// report tells what was done to an object.
func (p *pass) report(i int, outcome Outcome) {
	if outcome.UID = p.memory.object(p.planned[i].ID).proved; outcome.UID == "" {
		outcome.UID = p.observed[i].UID
	}
	p.Report(p.app, outcome)
}

// marksOnly observes nothing but our marks.
func (p *resource) marksOnly() schema.Schema {
	bare, err := schema.Default(map[string]any{
		"apiVersion": p.APIVersion, "kind": p.Kind, "metadata": map[string]any{"name": p.Name},
	})
	if err != nil { // it has an identity: it was planned
		return schema.Schema{}
	}
	return p.mark(bare)
}

// mark observes our marks, too.
func (p *resource) mark(observed schema.Schema) schema.Schema {
	marks := p.marks()
	for label := range marks.Labels {
		observed = observed.Observe("metadata", "labels", label)
	}
	for annotation := range marks.Annotations {
		observed = observed.Observe("metadata", "annotations", annotation)
	}
	return observed
}

// splitMarks parts the differences of our marks from the others.
func splitMarks(differences schema.Differences) (marks, fields schema.Differences) {
	for _, difference := range differences {
		if isMark(difference) {
			marks = append(marks, difference)
		} else {
			fields = append(fields, difference)
		}
	}
	return marks, fields
}

// isMark: where an object has no labels or annotations at all, all that are
// wanted are one difference.
func isMark(d schema.Difference) bool {
	if len(d.Path) < 2 || d.Path[0].Field != "metadata" {
		return false
	}
	if wanted, ok := d.Want.(map[string]any); ok && len(d.Path) == 2 && len(wanted) > 0 {
		return len(unreserved(wanted)) == 0
	}
	return len(d.Path) == 3 && manifest.IsReserved(d.Path[2].Field)
}

func uidOf(live map[string]any) types.UID {
	return (&unstructured.Unstructured{Object: live}).GetUID()
}

package reconcile

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

const (
	// maxTrials bounds the dry runs of one repair.
	maxTrials = 16
	// maxRefusals bounds the refused patches of one repair. Only a competing writer that changes the object between them makes that many.
	maxRefusals = 12
)

// errTooManyTrials is the error of a dry run beyond that.
var errTooManyTrials = errors.New("too many dry runs")

// ladder has the results of the dry runs of one repair. They hold for an object with the same
// content. Its controller may write its status meanwhile.
type ladder struct {
	trials        int
	circumstances string
	// exclusions are those that the API server accepts.
	exclusions []exclusion
	// control is the result of a dry run that changes nothing, nil before.
	control *bool
	// hasSifted reports that each remaining difference was accepted by a dry run.
	hasSifted bool
}

// exclusion is a group of differences that the API server accepts only if values that are not
// observed go with them. An example is strategy.type: Recreate and strategy.rollingUpdate.
type exclusion struct{ wanted, removals schema.Differences }

// removals returns the removals whose differences are all among the drift.
func (l ladder) removals(drift schema.Differences) schema.Differences {
	var removals schema.Differences
	for _, one := range l.exclusions {
		if !slices.ContainsFunc(one.wanted, func(wanted schema.Difference) bool { return !has(drift, wanted.Path) }) {
			removals = append(removals, one.removals...)
		}
	}
	return removals
}

func has(differences schema.Differences, path schema.Path) bool {
	return slices.ContainsFunc(differences, func(d schema.Difference) bool { return slices.Equal(d.Path, path) })
}

// climb evaluates the refusal of a patch. No refused field may prevent the repair of another one:
//
//  1. Learned values that the API server refuses are forgotten, elements that a list lacks
//     replace unobserved elements, and absent objects are created from the whole desired state.
//  2. Values that are not observed and exclude a desired one are removed together with its repair.
//  3. The differences at the named fields stay, and the others are sent.
//  4. If that does not say which ones, dry runs find out.
//
// A refused difference stays until its refusal is due again, see [pacing.Refusals].
func (w writer) climb(ctx context.Context, r *repair, d decision, refusal error) {
	if r.refusals++; r.refusals == maxRefusals {
		r.tries = 0
		return
	}
	fields := apierror.Fields(refusal)
	if r.forgetRefused(d, fields) {
		r.tries--
		return
	}
	if r.displaces = r.mayDisplace(d); r.displaces {
		r.hasDisplaced = true
		return
	}
	if r.hasDisplaced {
		d = r.decide(d.before) // without displacing
	}
	if r.mayBeWhole(d) {
		r.isWhole = true
		return
	}
	isLast := r.tries == 1
	r.tries = max(r.tries-1, 1) // if all was refused, nothing is written
	if content := r.object.circumstances(d.before); content != r.ladder.circumstances {
		r.ladder = ladder{circumstances: content, trials: r.ladder.trials}
	}
	if r.ladder.hasSifted { // the API server accepted it as a dry run
		r.refuse(d, d.drift, refusal)
		return
	}
	if w.exclude(ctx, r, d, fields) {
		return
	}
	named := pacing.Below(d.drift, apierror.ImmutableFields(refusal))
	if len(named) == 0 {
		named = pacing.Named(d.drift, fields)
	}
	switch {
	case len(d.drift) == 1:
		r.refuse(d, d.drift, refusal)
	case len(named) > 0 && !isLast:
		r.refuse(d, named, refusal)
	default:
		w.sift(ctx, r, d, refusal)
	}
}

// try sends a patch as a dry run.
func (w writer) try(ctx context.Context, r *repair, differences schema.Differences) error {
	if r.ladder.trials++; r.ladder.trials > maxTrials {
		return errTooManyTrials
	}
	return w.target.TryPatch(ctx, r.object.plan.Ref, differences.Patch())
}

// exclude adds the exclusions that explain a refusal and that the API server accepts as a dry run.
// It reports whether there are any.
func (w writer) exclude(ctx context.Context, r *repair, d decision, fields []string) (some bool) {
	isNamed := func(around schema.Path) bool {
		return slices.ContainsFunc(fields, func(field string) bool { return pacing.IsWithin(field, around.String()) })
	}
	for _, one := range r.exclusionsOf(d.before, d.drift, fields, isNamed) {
		if w.isValid(ctx, r) && w.try(ctx, r, slices.Concat(one.removals, one.wanted)) == nil {
			r.ladder.exclusions, some = append(r.ladder.exclusions, one), true
		}
	}
	return some
}

// isValid reports whether the API server accepts the object unchanged. If it does not, it may name a
// field that excludes nothing.
func (w writer) isValid(ctx context.Context, r *repair) bool {
	if r.ladder.control == nil {
		r.ladder.control = new(w.try(ctx, r, nil) == nil)
	}
	return *r.ladder.control
}

// exclusionsOf returns the possible exclusions among differences, one for each object around them.
// A value that is not observed may exclude a desired one beside it if the API server names it, or if
// Kubernetes accepts only one of the two. The latter counts where the API server refuses something.
func (r *repair) exclusionsOf(live map[string]any, drift schema.Differences, fields []string, refusesIn func(around schema.Path) bool) []exclusion {
	o := r.object
	var found []exclusion
	for _, difference := range drift {
		if difference.Kind != schema.Changed || difference.Want == nil || len(difference.Path) < 2 || difference.Path[0].Field == "metadata" {
			continue // nothing beside these excludes them, and finalizers must stay
		}
		name, around := difference.Path[len(difference.Path)-1].Field, difference.Path[:len(difference.Path)-1]
		for _, path := range o.plan.Marked.Siblings(o.plan.MarkedDesired(), live, difference.Path) {
			isNamed := slices.ContainsFunc(fields, func(field string) bool { return pacing.IsWithin(field, path.String()) })
			excludes := apitypes.Exclude(name, path[len(path)-1].Field) && refusesIn(around)
			if (isNamed || excludes) && !slices.ContainsFunc(r.ladder.exclusions, func(known exclusion) bool { return has(known.removals, path) }) {
				found = withRemoval(found, drift, around, schema.Difference{Path: path, Kind: schema.Changed, Have: schema.ValueAt(live, path)})
			}
		}
	}
	return found
}

// withRemoval adds a removal to the exclusion of its object. All differences in the object belong to
// that, because they may depend on each other.
func withRemoval(found []exclusion, drift schema.Differences, around schema.Path, removal schema.Difference) []exclusion {
	wanted := pacing.Below(drift, []string{around.String()})
	for i := range found {
		if slices.EqualFunc(found[i].wanted, wanted, func(a, b schema.Difference) bool { return slices.Equal(a.Path, b.Path) }) {
			if !has(found[i].removals, removal.Path) {
				found[i].removals = append(found[i].removals, removal)
			}
			return found
		}
	}
	return append(found, exclusion{wanted, schema.Differences{removal}})
}

// sift finds by dry runs which differences the API server accepts together, and records the refusals
// of the others. It refuses those that no dry run has tried, because there were too many or the API server cannot make
// any. If it does not answer, the next patch fails.
func (w writer) sift(ctx context.Context, r *repair, d decision, refusal error) {
	r.ladder.hasSifted = true
	drift := slices.DeleteFunc(slices.Clone(d.drift), func(one schema.Difference) bool { return has(d.removed, one.Path) })
	accepted := r.ladder.exclusions
	isGone := false
	sieve, why := pacing.NewSieve(drift, pacing.Below(drift, apierror.Fields(refusal))), map[string]error{}
	for candidate, more := sieve.Next(); more; candidate, more = sieve.Next() {
		r.ladder.exclusions = accepted
		err := w.try(ctx, r, slices.Concat(r.ladder.removals(candidate), candidate))
		single, isSingle := sieve.Single()
		switch {
		case err != nil && !apierror.IsRefusal(err):
			more, isGone = false, apierror.IsUnanswered(err) || apierrors.IsNotFound(err)
		case err != nil && isSingle:
			why[single.Path.String()] = err
			if one, ok := w.excludeFor(ctx, r, d.before, candidate, single, err); ok {
				accepted, err = append(accepted, one), nil
			}
		}
		if !more {
			break
		}
		sieve.Record(err == nil)
	}
	r.ladder.exclusions = accepted
	var refused []pacing.Refusal
	for _, difference := range sieve.Refused() {
		cause := why[difference.Path.String()]
		if cause == nil && isGone {
			continue
		}
		if cause == nil {
			cause = refusal
		}
		refused = append(refused, r.refusalOf(d.before, difference, cause))
	}
	r.record(d, refused)
}

// excludeFor returns the exclusion with which the API server accepts a single difference that it
// refuses without.
func (w writer) excludeFor(ctx context.Context, r *repair, live map[string]any, candidate schema.Differences, single schema.Difference, refusal error) (exclusion, bool) {
	everywhere := func(schema.Path) bool { return true }
	for _, one := range r.exclusionsOf(live, schema.Differences{single}, apierror.Fields(refusal), everywhere) {
		known := r.ladder.removals(candidate)
		if w.isValid(ctx, r) && w.try(ctx, r, slices.Concat(known, one.removals, candidate)) == nil {
			return one, true
		}
	}
	return exclusion{}, false
}

// refuse records one refusal of differences.
func (r *repair) refuse(d decision, differences schema.Differences, refusal error) {
	refused := make([]pacing.Refusal, 0, len(differences))
	for _, difference := range differences {
		refused = append(refused, r.refusalOf(d.before, difference, refusal))
	}
	r.record(d, refused)
}

// record records refusals. A competing writer that changes a refused field again and again has the agent ask
// again and again, which counts as contention. That a refusal is due again does not.
func (r *repair) record(d decision, refused []pacing.Refusal) {
	o := r.object
	if len(refused) == 0 {
		return
	}
	var changes schema.Differences
	for _, one := range refused {
		if !o.memory.refused.Knows(one.Change) {
			changes = append(changes, one.Change)
		}
	}
	if o.hasDrifted() && len(changes) > 0 {
		o.memory.contentions.Record(d.contentions(changes), o.inputs.now)
	}
	o.memory.refused = o.memory.refused.Add(refused, o.circumstances(d.before), o.inputs.now)
}

// refusalOf returns the refusal of a difference, with the remedy that fits.
func (r *repair) refusalOf(live map[string]any, change schema.Difference, refusal error) pacing.Refusal {
	reason := status.Invalid
	if apierrors.IsForbidden(refusal) {
		reason = status.Forbidden
	}
	return pacing.Refusal{Change: change, Reason: reason, Message: status.Advise(refusal, r.remedyFor(live, refusal))}
}

package reconcile

import (
	"context"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/plan"
)

// comparePhase computes the delta.
type comparePhase struct {
	observers Observers
	residence residence
}

func (c comparePhase) run(_ context.Context, p *pass) (progress, error) {
	p.delta = deltaOf(p.objects, c.held(p))
	return goOn(), nil
}

// held returns the objects of the inventory, and those that the Application may have created. It
// omits objects whose kind is not served, because they may still be wanted. It also omits Secrets
// of hooks, even if another Application has Secrets watched.
func (c comparePhase) held(p *pass) []manifest.ID {
	isUnserved := func(id manifest.ID) bool {
		return slices.ContainsFunc(p.objects, func(o *object) bool { return o.plan.Unserved != nil && o.plan.Is(id) })
	}
	held := slices.DeleteFunc(slices.Clone(p.app.Inventory), isUnserved)
	for _, stray := range c.observers.Strays(p.app.NamespacedName) {
		// Any client may write our name on objects. The loop would then read each of them in each
		// pass.
		summary, _ := stray.Summary.(Summary)
		mayBeOurs := summary.OwnerUID == p.app.UID && c.residence.reaches(p.app, stray.Namespace)
		if mayBeOurs && !plan.Contains(held, stray.ID) {
			held = append(held, stray.ID)
		}
	}
	return slices.DeleteFunc(held, p.isHookSecret)
}

// deltaOf compares the desired objects with the observed and the recorded ones. An object that was
// not observed under its present revision counts as different: the loop reads it, and may leave it
// unchanged. An object that could not be observed, or has ended, is neither missing nor different.
func deltaOf(objects []*object, held []manifest.ID) delta {
	var d delta
	for _, o := range objects {
		switch {
		case o.observed.Err != nil, o.ended != nil:
		case !o.observed.Exists():
			d.missing = append(d.missing, o)
		case o.observed.Differs():
			d.differing = append(d.differing, o)
		}
	}
	byKind := func(a, b *object) int { return plan.CompareKinds(a.plan.Kind, b.plan.Kind) }
	slices.SortStableFunc(d.missing, byKind)
	slices.SortStableFunc(d.differing, byKind)
	for _, id := range slices.Backward(plan.InOrder(held)) {
		if !slices.ContainsFunc(objects, func(o *object) bool { return plan.IsSame(o.plan.ID, id) }) {
			d.unwanted = append(d.unwanted, id)
		}
	}
	return d
}

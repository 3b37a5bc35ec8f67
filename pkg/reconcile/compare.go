package reconcile

import (
	"context"
	"slices"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// comparePhase computes the delta.
type comparePhase struct {
	observers Observers
	placement placement
}

func (c comparePhase) run(_ context.Context, p *pass) (progress, error) {
	p.delta = deltaOf(p.objects, heldBy(p))
	p.unrecorded = c.unrecorded(p)
	return goOn(), nil
}

// heldBy returns the objects of the inventory. It omits objects that are not looked at, because
// they are still wanted. It also omits Secrets of hooks, which are not compared here.
func heldBy(p *pass) []manifest.ID {
	return slices.DeleteFunc(slices.Clone(p.app.Inventory), func(id manifest.ID) bool {
		return p.isHookSecret(id) || slices.ContainsFunc(p.objects, func(o *object) bool { return o.plan.Unserved != nil && o.plan.Is(id) })
	})
}

// unrecorded returns the objects that have our marks, and that are in neither manifest nor
// inventory. Any client that may patch an object can write the marks, so the loop only reports
// these objects. It neither reads, changes nor deletes them.
func (c comparePhase) unrecorded(p *pass) []manifest.ID {
	known := map[manifest.ID]bool{}
	for _, id := range p.app.Inventory {
		known[inAnyVersion(id)] = true
	}
	for _, o := range p.objects {
		known[inAnyVersion(o.plan.ID)] = true
	}
	var unrecorded []manifest.ID
	for _, stray := range c.observers.Strays(p.app.NamespacedName) {
		summary, _ := stray.Summary.(Summary)
		isOurs := summary.OwnerUID == p.app.UID && c.placement.reaches(p.app, stray.Namespace)
		if isOurs && !known[inAnyVersion(stray.ID)] {
			unrecorded = append(unrecorded, stray.ID)
		}
	}
	return unrecorded
}

// deltaOf compares the desired objects with the observed and the recorded ones. An object that was
// not observed under its present revision counts as different: the loop reads it, and may leave it
// unchanged. An object that could not be observed, or has ended, is neither missing nor different.
func deltaOf(objects []*object, held []manifest.ID) delta {
	var d delta
	for _, o := range objects {
		switch {
		case o.observed.Err != nil, o.ended != nil:
		case o.sources != nil && !o.isFillDue():
		case o.sources != nil && slices.Contains(held, o.plan.ID):
			d.differing = append(d.differing, o)
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

package reconcile

import (
	"cmp"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
)

// Delta is what has to be done (step 4): resources by their index in the plan,
// in the order of creation, and what is held but not wanted any more, in the
// opposite order.
type Delta struct {
	New      []int
	Modified []int
	Deleted  []manifest.ID
}

// Empty tells if there is nothing to do.
func (d Delta) Empty() bool { return len(d.New)+len(d.Modified)+len(d.Deleted) == 0 }

// Calculate compares what is planned with what was observed of it, and with
// what is held. A resource that was not seen under its present revision counts
// as modified: it is read, and perhaps left alone. One that could not be observed
// is neither new nor modified.
func Calculate(planned []manifest.ID, observed []observer.Observation, held []manifest.ID) Delta {
	var delta Delta
	for i, observation := range observed {
		switch {
		case observation.Err != nil:
		case !observation.Exists():
			delta.New = append(delta.New, i)
		case observation.Differs():
			delta.Modified = append(delta.Modified, i)
		}
	}
	byRank := func(a, b int) int { return cmp.Compare(rank(planned[a].Kind), rank(planned[b].Kind)) }
	slices.SortStableFunc(delta.New, byRank)
	slices.SortStableFunc(delta.Modified, byRank)
	for _, id := range slices.Backward(inOrder(held)) {
		if !slices.ContainsFunc(planned, func(wanted manifest.ID) bool { return sameObject(wanted, id) }) {
			delta.Deleted = append(delta.Deleted, id)
		}
	}
	return delta
}

// sameObject tells if two identities are of one object. It is served by every
// version of its API: to change apiVersion from v1beta1 to v1 deletes nothing.
func sameObject(a, b manifest.ID) bool {
	return a.GroupVersionKind().GroupKind() == b.GroupVersionKind().GroupKind() && a.Namespace == b.Namespace && a.Name == b.Name
}

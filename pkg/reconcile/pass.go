package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// errConflict is the error of an object that exists and is not ours.
var errConflict = errors.New("the object exists and does not belong to this Application")

// errIneffective is the error of a repair that the API server accepted and that
// changed nothing, or too little.
var errIneffective = errors.New("the repair had no lasting effect on")

// pass is one walk through the loop for one Application.
type pass struct {
	*Reconciler

	app      *application.Application
	planned  []resource
	observed []observer.Observation
	// seen are the objects that were read or written.
	seen []map[string]any
	// kept are the resources that left the spec and are not gone yet.
	kept []manifest.ID
}

// start lets the events of the Application flow again.
func (p *pass) start() {
	p.Observers.Start(p.app.NamespacedName, targetsOf(p.planned), p.seen)
}

// claim writes what is about to be held, before it is created, so that nothing
// is ever created that a restarted agent does not know of.
func (p *pass) claim(ctx context.Context, delta Delta) error {
	held := slices.Clone(p.app.Inventory)
	for _, i := range delta.New {
		if id := p.planned[i].ID; !slices.Contains(held, id) {
			held = append(held, id)
		}
	}
	if p.app.Finalized && len(held) == len(p.app.Inventory) {
		return nil
	}
	p.app.Inventory, p.app.Finalized = held, true
	return p.Applications.Update(ctx, p.app)
}

// act does what the delta says (step 5): it deletes, creates and patches. One
// object that fails does not hold up the others.
func (p *pass) act(ctx context.Context, delta Delta) error {
	kept, err := p.deleteAll(ctx, p.app, delta.Deleted)
	p.kept = kept
	failures := []error{err}
	for _, i := range delta.New {
		failures = append(failures, p.create(ctx, i))
	}
	for _, i := range delta.Modified {
		failures = append(failures, p.mend(ctx, i, p.observed[i].Live))
	}
	return errors.Join(failures...)
}

func (p *pass) create(ctx context.Context, i int) error {
	planned := &p.planned[i]
	live, err := p.Cluster.Create(ctx, planned.Ref, planned.body())
	if apierrors.IsAlreadyExists(err) {
		// Created before a crash, or its label was removed: if it proves to be ours.
		return p.mend(ctx, i, nil)
	}
	if err != nil {
		return err
	}
	outcome := Outcome{Action: Created, Object: planned.ID, Took: p.sinceSeen(i)}
	if !p.observed[i].Seen.IsZero() {
		outcome.Action = Recreated
	}
	p.Report(p.app, outcome)
	return p.took(i, live)
}

// mend patches the observed fields that differ, and nothing else. That some
// still do afterwards is an error: the API server writes them down otherwise,
// or the desired state itself is not legal.
func (p *pass) mend(ctx context.Context, i int, live map[string]any) error {
	planned := &p.planned[i]
	var before map[string]any
	var drift schema.Differences
	var patch schema.Patch
	after, err := p.Cluster.Patch(ctx, planned.Ref, live, func(live map[string]any) (schema.Patch, error) {
		if err := prove(planned.marks, planned.ID, live); err != nil {
			return nil, err
		}
		before, drift = live, planned.Marked.Compare(planned.Desired, live).Drift()
		patch = drift.Patch()
		return patch, nil
	})
	if apierrors.IsNotFound(err) {
		return p.create(ctx, i)
	}
	if err != nil {
		return err
	}
	left := planned.Marked.Compare(planned.Desired, after).Drift()
	if len(patch) > 0 {
		p.Report(p.app, p.mended(i, before, drift))
	}
	err = p.took(i, after)
	if len(left) > 0 {
		return errors.Join(fmt.Errorf("%w %s: %s", errIneffective, planned.ID, join(pathsOf(left))), err)
	}
	return err
}

func (p *pass) mended(i int, before map[string]any, drift schema.Differences) Outcome {
	paths := pathsOf(drift)
	if status := p.app.Status; status.ObservedSpec != p.app.Spec.Digest() || status.State != application.StateRunning {
		return Outcome{Action: Configured, Object: p.planned[i].ID, Paths: paths}
	}
	return Outcome{
		Action:  Reverted,
		Object:  p.planned[i].ID,
		Paths:   paths,
		Culprit: observer.Blame(before, paths, p.FieldManager),
		Took:    p.sinceSeen(i),
	}
}

// sinceSeen is the time since the event that is acted on, 0 if there was none.
func (p *pass) sinceSeen(i int) time.Duration {
	seen := p.observed[i].Seen
	if seen.IsZero() {
		return 0
	}
	return p.Now().Sub(seen)
}

func pathsOf(differences schema.Differences) []schema.Path {
	paths := make([]schema.Path, 0, len(differences))
	for _, difference := range differences {
		paths = append(paths, difference.Path)
	}
	return paths
}

// took takes note of an object as the API server has it now, and learns from it (step 6).
func (p *pass) took(i int, live map[string]any) error {
	planned := &p.planned[i]
	p.observed[i].Projection = planned.Schema.Project(planned.desired, live)
	p.seen = append(p.seen, live)
	return planned.learn(live)
}

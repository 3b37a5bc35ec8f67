package reconcile

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// publish updates the documents of the working copy, unless they are up to date. For an object that
// does not match a new spec yet, the former entry stays, because the fields to release are found
// there. The values of an object that never matched the spec are not ours to release.
func publish(p *pass) {
	if isPublished(p) {
		return
	}
	applied := []map[string]any{}
	var observed, learned []map[string]any
	for _, o := range p.objects {
		applied = append(applied, o.plan.Desired())
		if values := learnedOf(o); values != nil {
			learned = append(learned, values)
		}
		if entry := observedOf(o); entry != nil {
			observed = append(observed, entry)
		}
	}
	for _, secret := range p.secrets { // digests
		desired := secret.plan.Desired()
		applied = append(applied, desired)
		if desired["data"] != nil {
			observed = append(observed, secret.plan.Mangled.ObservedPart(desired))
			learned = append(learned, secret.plan.Mangled.Learned(desired, secret.plan.Manifest()))
		}
	}
	p.app.LastApplied = application.Publishing(applied)
	p.app.LastObserved = application.Publishing(observed)
	p.app.Learned = learned
}

// learnedOf returns the published learned values of an object. The spec does not release values
// that were learned before.
func learnedOf(o *object) map[string]any {
	if !o.isSettled && !o.plan.HasForgotten {
		if former := o.learnedEntry(); former != nil {
			return o.plan.WithForms(former)
		}
	}
	return o.plan.Learned()
}

// observedOf returns the published observed values of an object.
func observedOf(o *object) map[string]any {
	switch projection := o.observed.Projection; {
	case projection != nil && o.isSettled:
		return o.plan.AsWritten(plan.WithoutMarks(projection.Fields()))
	case o.part != nil:
		return o.part
	}
	return o.formerEntry()
}

// isPublished reports whether the published documents are up to date. For an object that does not
// match the spec, the documents contain more than isPublished compares.
func isPublished(p *pass) bool {
	last := p.memory.published
	if last == nil || last.plan != p.memory.plan || !areSettled(p) {
		return false
	}
	for i, o := range p.objects {
		if o.plan.Revision != last.revisions[i] || !bytes.Equal(o.observed.Projection, last.seen[i]) {
			return false
		}
	}
	return p.app.Version == last.version && p.app.LastApplied.IsStored() && p.app.LastObserved.IsStored() && reflect.DeepEqual(p.app.Learned, last.learned)
}

// recordPublished records that the documents are stored.
func recordPublished(p *pass) {
	if !areSettled(p) {
		p.memory.published = nil
		return
	}
	last := &published{version: p.app.Version, learned: p.app.Learned, plan: p.memory.plan}
	for _, o := range p.objects {
		last.revisions = append(last.revisions, o.plan.Revision)
		last.seen = append(last.seen, o.observed.Projection)
	}
	p.memory.published = last
}

// areSettled reports whether all objects match the spec, and there are no Secrets.
func areSettled(p *pass) bool {
	return len(p.secrets) == 0 && !slices.ContainsFunc(p.objects, func(o *object) bool {
		return !o.isSettled || o.plan.HasForgotten || o.observed.Projection == nil
	})
}

// inventoryOf returns the objects that are, or may be, on the target.
func inventoryOf(p *pass) []manifest.ID {
	var ids []manifest.ID
	for _, o := range p.objects {
		if o.plan.Unserved == nil && p.inputs.enforces && !o.isUnclaimed {
			ids = append(ids, o.plan.ID)
			continue
		}
		for _, id := range p.app.Inventory {
			if o.plan.Is(id) {
				ids = append(ids, id)
			}
		}
	}
	for _, secret := range p.secrets {
		if id := secret.plan.ID; p.inputs.enforces && !secret.isUnclaimed || slices.Contains(p.app.Inventory, id) {
			ids = append(ids, id)
		}
	}
	for _, object := range p.leaving {
		ids = append(ids, object.Object)
	}
	return ids
}

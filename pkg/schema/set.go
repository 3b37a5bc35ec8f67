package schema

import (
	"fmt"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Documents returns the schemas in the form in which users write them: the document
// status.mangled_observer_schema.
func (s Set) Documents() []map[string]any {
	documents := make([]map[string]any, 0, len(s))
	for _, schema := range s {
		documents = append(documents, schema.Document())
	}
	return documents
}

// Of returns the schema of each resource, in the order of the resources. The
// error names a resource without one.
func (s Set) Of(resources []map[string]any) ([]Schema, error) {
	ids, err := identifyAll(resources)
	if err != nil {
		return nil, err
	}
	schemas := make([]Schema, len(ids))
	for i, partner := range manifest.PairNamesakes(ids, s.ids()) {
		if partner < 0 {
			return nil, fmt.Errorf("no observer schema for %s", ids[i])
		}
		schemas[i] = s[partner]
	}
	return schemas, nil
}

// Retain returns the desired state of a new manifest (Krake documentation, Application controller, step 2). It has each
// resource of the manifest, with the observed values that only the former desired state knows. A
// former resource that left the manifest, but still has a schema, stays with its observed values.
func (s Set) Retain(resources, former []map[string]any) ([]map[string]any, error) {
	ids, err := identifyAll(resources)
	if err != nil {
		return nil, err
	}
	formerIDs, err := identifyAll(former)
	if err != nil {
		return nil, err
	}
	desired := make([]map[string]any, len(resources))
	for i, resource := range resources {
		desired[i], _ = clone(resource).(map[string]any)
	}
	resourceOf := manifest.PairNamesakes(s.ids(), ids)
	formerOf := manifest.Pair(s.idsOf(resourceOf, ids), formerIDs)
	for i, schema := range s {
		into, from := resourceOf[i], formerOf[i]
		switch {
		case from < 0:
		case into < 0:
			desired = append(desired, schema.Retain(nil, former[from]))
		default:
			desired[into] = schema.Retain(desired[into], former[from])
		}
	}
	return desired, nil
}

// Delta has the resources to create, change and delete, so that the observed state becomes the
// desired one. Its lists have ascending indices.
type Delta struct {
	New, Modified []int // of the desired resources
	Deleted       []int // of the observed resources
}

// Delta compares the desired resources with projections of the live ones. The
// error names a desired resource without a schema.
func (s Set) Delta(desired, observed []map[string]any) (Delta, error) {
	schemas, err := s.Of(desired)
	if err != nil {
		return Delta{}, err
	}
	desiredIDs, err := identifyAll(desired)
	if err != nil {
		return Delta{}, err
	}
	observedIDs, err := identifyAll(observed)
	if err != nil {
		return Delta{}, err
	}
	var delta Delta
	wanted := make([]bool, len(observed))
	for i, partner := range manifest.Pair(desiredIDs, observedIDs) {
		if partner < 0 {
			delta.New = append(delta.New, i)
			continue
		}
		wanted[partner] = true
		if len(schemas[i].CompareProjection(desired[i], observed[partner])) > 0 {
			delta.Modified = append(delta.Modified, i)
		}
	}
	for i := range observed {
		if !wanted[i] {
			delta.Deleted = append(delta.Deleted, i)
		}
	}
	return delta, nil
}

func (s Set) ids() []manifest.ID {
	ids := make([]manifest.ID, 0, len(s))
	for _, schema := range s {
		ids = append(ids, schema.id)
	}
	return ids
}

// idsOf returns the identity of each schema's resource, which may have a namespace. A schema
// without a resource has its own identity.
func (s Set) idsOf(resourceOf []int, resources []manifest.ID) []manifest.ID {
	ids := s.ids()
	for i, resource := range resourceOf {
		if resource >= 0 {
			ids[i] = resources[resource]
		}
	}
	return ids
}

func identifyAll(resources []map[string]any) ([]manifest.ID, error) {
	ids := make([]manifest.ID, 0, len(resources))
	for i, resource := range resources {
		id, err := manifest.Identify(resource)
		if err != nil {
			return nil, fmt.Errorf("resource %d: %w", i, err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Set is a mangled observer schema: one valid schema for each resource of a manifest. The user's
// schemas are first, in their order, and then the default ones.
type Set []Schema

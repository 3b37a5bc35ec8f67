package main

import (
	"slices"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// refine returns the schema with which the semantic mode compares a desired resource.
// Lists stay aligned by index, as in the vectors.
func refine(s schema.Schema, desired map[string]any) schema.Schema {
	return apitypes.AcceptWritten(s, desired)
}

// refined returns the set with each schema refined for its desired resource. The order
// stays: it decides which schema belongs to which of several resources of the same
// name.
func (s *state) refined(set schema.Set) schema.Set {
	if !s.semantic {
		return set
	}
	schemaIDs := make([]manifest.ID, 0, len(set))
	for _, one := range set {
		schemaIDs = append(schemaIDs, one.ID())
	}
	applied := resources(s.applied)
	refined := slices.Clone(set)
	for i, partner := range manifest.PairNamesakes(ids(applied), schemaIDs) {
		if partner >= 0 {
			refined[partner] = refine(set[partner], applied[i])
		}
	}
	return refined
}

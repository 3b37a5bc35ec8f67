package main

import (
	"fmt"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// state is the input of the functions: the lists of an Application.
type state struct {
	resources, custom         []any
	mangled, applied, current []any
	response, live            map[string]any
	// semantic: schemas are refined before they compare.
	semantic bool
}

// function runs a function of the engine and returns its result in the vector's form.
type function func(*state) (map[string]any, error)

// functions has the functions that vectors name.
var functions = map[string]function{
	"default_schema":         (*state).defaultSchema,
	"applied_from_spec":      withSchemas((*state).appliedFromSpec),
	"applied_from_response":  withSchemas((*state).appliedFromResponse),
	"observed_from_response": withSchemas((*state).observedFromResponse),
	"delta":                  withSchemas((*state).delta),
	"observed_part":          withSchemas((*state).observedPart),
	"reverted":               withSchemas((*state).reverted),
	"validate":               (*state).validate,
}

// withSchemas returns a function that uses the schemas of the state.
func withSchemas(f func(*state, schema.Set) (map[string]any, error)) function {
	return func(s *state) (map[string]any, error) {
		set, err := parsed(s.mangled)
		if err != nil {
			return nil, err
		}
		return f(s, set)
	}
}

func newState(input map[string]any) *state {
	spec, _ := input["spec"].(map[string]any)
	status, _ := input["status"].(map[string]any)
	items := func(from map[string]any, name string) []any {
		list, _ := from[name].([]any)
		return list
	}
	s := &state{
		resources: items(spec, "manifest"),
		custom:    items(spec, "observer_schema"),
		mangled:   items(status, "mangled_observer_schema"),
		applied:   items(status, "last_applied_manifest"),
		current:   items(status, "last_observed_manifest"),
	}
	s.response, _ = input["response"].(map[string]any)
	s.live, _ = input["live"].(map[string]any)
	return s
}

func status(name string, resources []any) map[string]any {
	if resources == nil {
		resources = []any{}
	}
	return map[string]any{"status": map[string]any{name: resources}}
}

func (s *state) validate() (map[string]any, error) {
	_, found := schema.Mangle(s.resources, s.custom)
	result := map[string]any{"warnings": listFindings(found.Warnings())}
	if errors := found.Errors(); len(errors) > 0 {
		result["errors"] = listFindings(errors)
	}
	return result, nil
}

func listFindings(found schema.Findings) []any {
	var items []any
	for _, f := range found {
		items = append(items, map[string]any{"code": f.Code, "path": f.Path, "message": f.Message})
	}
	return items
}

// defaultSchema uses the user's schemas unchanged: validate
// reports what does not fit the manifest.
func (s *state) defaultSchema() (map[string]any, error) {
	set, _ := schema.Mangle(s.resources, s.custom)
	if set == nil {
		var err error
		if set, err = s.unchecked(); err != nil {
			return nil, err
		}
	}
	s.mangled = list(set.Documents())
	return status("mangled_observer_schema", s.mangled), nil
}

// unchecked returns the user's schemas and the default ones without a check whether
// they fit.
func (s *state) unchecked() (schema.Set, error) {
	set, err := parsed(s.custom)
	if err != nil {
		return nil, err
	}
	var taken []manifest.ID
	for _, own := range set {
		taken = append(taken, own.ID())
	}
	all := resources(s.resources)
	for i, partner := range manifest.PairNamesakes(ids(all), taken) {
		if partner >= 0 {
			continue
		}
		added, err := schema.Default(all[i])
		if err != nil {
			return nil, err
		}
		set = append(set, added)
	}
	return set, nil
}

// parsed parses schemas. They may belong to resources of any list: resources that hooks
// add are in no manifest.
func parsed(schemas []any) (schema.Set, error) {
	set, found := schema.Mangle(nil, schemas)
	for _, f := range found.Errors() {
		if f.Code != "not-in-manifest" {
			return nil, f
		}
	}
	if set != nil {
		return set, nil
	}
	stubs := make([]any, 0, len(schemas))
	for _, document := range schemas {
		fields, _ := document.(map[string]any)
		metadata, _ := fields["metadata"].(map[string]any)
		stubs = append(stubs, map[string]any{
			"apiVersion": fields["apiVersion"], "kind": fields["kind"],
			"metadata": map[string]any{"name": metadata["name"], "namespace": fmt.Sprint(len(stubs))},
		})
	}
	set, found = schema.Mangle(stubs, schemas)
	for _, f := range found.Errors() {
		return nil, f
	}
	return set, nil
}

func (s *state) appliedFromSpec(set schema.Set) (map[string]any, error) {
	desired, err := set.Retain(resources(s.resources), resources(s.applied))
	if err != nil {
		return nil, err
	}
	s.applied = list(desired)
	return status("last_applied_manifest", s.applied), nil
}

func (s *state) appliedFromResponse(set schema.Set) (map[string]any, error) {
	i, own, err := s.find(set, s.response)
	if err != nil {
		return nil, err
	}
	applied := resources(s.applied)
	applied[i] = own.LateInitialize(applied[i], s.response)
	s.applied = list(applied)
	return status("last_applied_manifest", s.applied), nil
}

func (s *state) observedFromResponse(set schema.Set) (map[string]any, error) {
	desired, own, err := s.observing(set)
	if err != nil {
		return nil, err
	}
	projection := own.Project(desired, s.response)
	current := resources(s.current)
	id, err := manifest.Identify(projection)
	if err != nil {
		return nil, err
	}
	if i := manifest.Pair([]manifest.ID{id}, ids(current))[0]; i >= 0 {
		current[i] = projection
	} else {
		current = append(current, projection)
	}
	s.current = list(current)
	return status("last_observed_manifest", s.current), nil
}

// observing returns the schema of the response, and the desired resource if one is
// known: it distinguishes resources of one name, and the elements of lists.
func (s *state) observing(set schema.Set) (map[string]any, schema.Schema, error) {
	if len(s.applied) > 0 {
		i, own, err := s.find(set, s.response)
		if err != nil {
			return nil, schema.Schema{}, err
		}
		return resources(s.applied)[i], own, nil
	}
	own, err := set.Of([]map[string]any{s.response})
	if err != nil {
		return nil, schema.Schema{}, err
	}
	return nil, own[0], nil
}

// find returns the desired resource of a response and its schema.
func (s *state) find(set schema.Set, response map[string]any) (int, schema.Schema, error) {
	id, err := manifest.Identify(response)
	if err != nil {
		return 0, schema.Schema{}, err
	}
	applied := resources(s.applied)
	i := manifest.Pair([]manifest.ID{id}, ids(applied))[0]
	if i < 0 {
		return 0, schema.Schema{}, fmt.Errorf("unknown resource %s", id)
	}
	schemas, err := set.Of(applied)
	if err != nil {
		return 0, schema.Schema{}, err
	}
	return i, schemas[i], nil
}

func (s *state) delta(set schema.Set) (map[string]any, error) {
	delta, err := s.refined(set).Delta(resources(s.applied), resources(s.current))
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"new": indices(delta.New), "modified": indices(delta.Modified), "deleted": indices(delta.Deleted),
	}, nil
}

func (s *state) observedPart(set schema.Set) (map[string]any, error) {
	applied := resources(s.applied)
	schemas, err := set.Of(applied)
	if err != nil {
		return nil, err
	}
	for i := range applied {
		applied[i] = schemas[i].ObservedPart(applied[i])
	}
	return map[string]any{"observed_part": list(applied)}, nil
}

func (s *state) reverted(set schema.Set) (map[string]any, error) {
	i, own, err := s.find(s.refined(set), s.live)
	if err != nil {
		return nil, err
	}
	return map[string]any{"live": own.Overlay(resources(s.applied)[i], s.live)}, nil
}

func resources(items []any) []map[string]any {
	list := make([]map[string]any, 0, len(items))
	for _, item := range items {
		resource, _ := item.(map[string]any)
		list = append(list, resource)
	}
	return list
}

func list(resources []map[string]any) []any {
	items := make([]any, 0, len(resources))
	for _, resource := range resources {
		items = append(items, resource)
	}
	return items
}

func indices(numbers []int) []any {
	items := []any{}
	for _, n := range numbers {
		items = append(items, int64(n))
	}
	return items
}

func ids(resources []map[string]any) []manifest.ID {
	var ids []manifest.ID
	for _, resource := range resources {
		id, _ := manifest.Identify(resource) // an invalid one matches nothing
		ids = append(ids, id)
	}
	return ids
}

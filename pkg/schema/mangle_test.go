package schema_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

func TestMangle(t *testing.T) {
	forEach(t, "mangle.yaml", func(t *testing.T, c testCase) {
		set, findings := schema.Mangle(c.mangleArguments())
		check.Equal(t, "findings", c.texts("findings"), places(findings))
		check.Equal(t, "there are errors", set == nil, len(findings.Errors()) > 0)
		if _, ok := c["mangled"]; ok {
			c.check(t, "mangled", set.Documents())
		}
	})
}

// mangleArguments adds the Song where a case names no other resource.
func (c testCase) mangleArguments() (resources, custom []any) {
	resources = []any{complete(object{"spec": object{"key1": "kilestbo", "rythms": []any{"bubam", "badum"}}})}
	if fields := c.object("manifest"); fields != nil {
		resources = []any{fields}
	}
	if items, ok := c["resources"].([]any); ok {
		resources = items
	}
	custom = []any{c.object("schema")}
	if items, ok := c["custom"].([]any); ok {
		custom = items
	}
	return resources, custom
}

func places(findings schema.Findings) []string {
	var all []string
	for _, finding := range findings {
		place := finding.Code + " at " + finding.Path
		if finding.Warning {
			place = "warning " + place
		}
		all = append(all, place)
	}
	return all
}

// Each finding that a user reads names the way out.
func TestFindingsTellTheWayOut(t *testing.T) {
	song := object{"spec": object{"rythms": []any{"bubam", "badum"}}}
	tests := []struct {
		why    string
		schema object
		want   string
	}{
		{
			"a value", object{"spec": object{"key1": "kilestbo"}},
			"spec.observer_schema[0].spec.key1: Value of 'key1' is not null: an observed value is written as null",
		},
		{
			"the namespace", object{"metadata": object{"namespace": "demo"}},
			"spec.observer_schema[0].metadata.namespace: Value of 'namespace' is not null: set it to null to observe it",
		},
		{
			"an element", object{"spec": object{"rythms": []any{"bubam", object{minLength: int64(2), maxLength: int64(2)}}}},
			"spec.observer_schema[0].spec.rythms[0]: Element of a list is not null: an observed element is written as null",
		},
		{
			"no control dictionary", object{"spec": object{"rythms": []any{nil}}},
			"spec.observer_schema[0].spec.rythms: Special list control dictionary not found: " +
				"end the list with {observer_schema_list_min_length: 0, observer_schema_list_max_length: 0}",
		},
		{
			"a minimum below the manifest", object{"spec": object{"rythms": []any{object{minLength: int64(1), maxLength: int64(2)}}}},
			"spec.observer_schema[0].spec.rythms: observer_schema_list_min_length is below the manifest's 2 elements, so they may be removed",
		},
		{
			"another shape", object{"spec": object{"rythms": object{}}},
			"spec.observer_schema[0].spec.rythms: The schema expects an object, the manifest has a list",
		},
		{
			"another resource", object{"kind": "Artist"},
			"spec.observer_schema[0]: Observed resource must be in manifest: v1 Artist top50",
		},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			_, findings := schema.Mangle([]any{complete(song)}, []any{complete(test.schema)})
			if len(findings) != 1 || findings[0].Error() != test.want {
				t.Errorf("got %v, want %s", findings, test.want)
			}
		})
	}
}

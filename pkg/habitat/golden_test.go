package habitat_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// golden is a case of testdata/golden: a Habitat, or the namespace of a peer file, and the
// exact bytes of the result.
type golden struct {
	Why        string         `json:"why"`
	Habitat    map[string]any `json:"habitat"`
	FilesImage string         `json:"files_image"`
	Namespace  string         `json:"namespace"`
	// Manifest and ObserverSchema are YAML.
	Manifest       string `json:"manifest"`
	ObserverSchema string `json:"observer_schema"`
}

// All later versions of the program must generate the same as this one. A changed file of
// testdata/golden restarts the Pods of all Habitats like it, at the upgrade and at its
// rollback. New cases may be added at any time: KRAKE_WRITE_GOLDEN=yes fills in the results of
// cases without any.
func TestGolden(t *testing.T) {
	check.Golden(t, "testdata/golden/*.yaml", 7, func(t *testing.T, want golden) (got golden, missing string) {
		got = want
		got.Manifest, got.ObserverSchema = generated(t, want)
		if want.Manifest+want.ObserverSchema == "" {
			missing = "manifest: |\n" + check.Indented(got.Manifest) + "observer_schema: |\n" + check.Indented(got.ObserverSchema)
		}
		return got, missing
	})
}

// generated returns manifest and observer schema of a case.
func generated(t *testing.T, of golden) (string, string) {
	t.Helper()
	if of.Habitat == nil {
		resource, observed := habitat.PeerConfigMap(of.Namespace)
		mangled, findings := schema.Mangle([]any{resource}, []any{observed})
		check.Empty(t, "findings", findings)
		check.Equal(t, "what is observed", []map[string]any{observed}, mangled.Documents())
		return marshal(t, resource), marshal(t, observed)
	}
	workload := parse(t, decode(t, marshal(t, of.Habitat))).Workload(of.FilesImage)
	observed, err := schema.Default(workload)
	check.Must(t, err)
	return marshal(t, workload), marshal(t, observed.Document())
}

func marshal(t *testing.T, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	check.Must(t, err)
	return string(text)
}

package habitat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// observedLeaves is the number of observed values in the samples of the original operator: 182 in four
// StatefulSets, and 5 in the peer file.
const observedLeaves = 187

// The samples of the original operator are not part of this repository: the environment names their
// folder. Their StatefulSets wait for a manual deletion of outdated Pods. This program
// replaces the Pods one by one.
func TestSamplesOfTheReference(t *testing.T) {
	folder := os.Getenv("KRAKE_HABITAT_SAMPLES")
	if folder == "" {
		t.Skip("KRAKE_HABITAT_SAMPLES names no folder of samples: only our own were tried")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.input.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}
	leaves := 0
	for _, file := range files {
		name := strings.TrimSuffix(file, ".input.yaml")
		t.Run(filepath.Base(name), func(t *testing.T) { leaves += checkSample(t, name) })
	}
	t.Run("the peer file", func(t *testing.T) { leaves += checkPeerSample(t, folder) })
	t.Logf("%d observed leaves", leaves)
	check.Equal(t, "observed leaves", observedLeaves, leaves)
}

// checkSample returns the number of observed leaves.
func checkSample(t *testing.T, name string) int {
	t.Helper()
	h := parse(t, habitatIn(t, name+".input.yaml"))
	workload := h.Workload(habitat.DefaultFilesImage)
	expected := documentsOf(t, read(t, name+".expected.yaml"))[0]
	check.Equal(t, "workload", set(t, expected, "spec.updateStrategy.type", habitat.RollingUpdate), workload)

	original, observed := applicationIn(t, name+".application.yaml")
	check.Equal(t, "manifest of the Application", set(t, original, "spec.updateStrategy.type", habitat.RollingUpdate), workload)
	standard, err := schema.Default(workload)
	check.Must(t, err)
	check.Equal(t, "observer schema of the Application", observed, standard.Document())
	leaves := scalars(workload)
	check.Equal(t, "leaves that are observed", leaves, observedIn(observed))
	return leaves
}

func checkPeerSample(t *testing.T, folder string) int {
	t.Helper()
	resource, observed := habitat.PeerConfigMap("shop")
	manifest, schema := applicationIn(t, filepath.Join(folder, "00-peers-per-namespace.application.yaml"))
	check.Equal(t, "manifest of the Application", manifest, resource)
	check.Equal(t, "observer schema of the Application", schema, observed)
	states := documentsOf(t, read(t, filepath.Join(folder, "00-peers-per-namespace.expected.yaml")))
	check.Equal(t, "without a Pod", states[0], resource)
	return observedIn(observed)
}

// observedIn counts the observed values of a schema: the identity and all nulls. The lengths
// of lists do not count.
func observedIn(schema map[string]any) int {
	const identity = 3 // apiVersion, kind and name
	return identity + nulls(schema)
}

func nulls(value any) int {
	count := 0
	switch value := value.(type) {
	case nil:
		return 1
	case map[string]any:
		for _, field := range value {
			count += nulls(field)
		}
	case []any:
		for _, item := range value {
			count += nulls(item)
		}
	}
	return count
}

// habitatIn returns the Habitat among the documents of a file.
func habitatIn(t *testing.T, file string) map[string]any {
	t.Helper()
	for _, document := range documentsOf(t, read(t, file)) {
		if document["kind"] == habitat.Kind {
			return document
		}
	}
	t.Fatalf("%s has no Habitat", file)
	return nil
}

// applicationIn returns manifest and observer schema of a proposed ConfigMap.
func applicationIn(t *testing.T, file string) (resource, observed map[string]any) {
	t.Helper()
	data := decode(t, read(t, file))["data"].(map[string]any)
	return decode(t, data["manifest"].(string)), decode(t, data["observer-schema"].(string))
}

func documentsOf(t *testing.T, text string) []map[string]any {
	t.Helper()
	decoded, err := manifest.Decode([]byte(text))
	if err != nil || len(decoded) == 0 {
		t.Fatalf("%d documents, error %v", len(decoded), err)
	}
	documents := make([]map[string]any, len(decoded))
	for i, document := range decoded {
		documents[i] = document.(map[string]any)
	}
	return documents
}

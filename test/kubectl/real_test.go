package kubectl

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The resources of the file that the environment names do not differ after their
// creation: the plugin sees no drift without a change.
func TestRealResources(t *testing.T) {
	kit.Long(t, "resources of the real world")
	file := os.Getenv("KRAKE_REAL_MANIFESTS")
	if file == "" {
		t.Skip("KRAKE_REAL_MANIFESTS names no file of real-world resources: the plugin was tried with those of the sessions only")
	}
	text, err := os.ReadFile(file)
	kit.Must(t, err)
	var world struct {
		Applications []struct {
			App       string
			Resources []map[string]any
		}
	}
	kit.Must(t, json.Unmarshal(text, &world))
	// The shipped rights do not matter here: the test is about differences.
	hub.Kubectl(t, "create", "clusterrolebinding", "real", "--clusterrole=cluster-admin", "--serviceaccount=krake-agents:local")
	t.Cleanup(func() { hub.Kubectl(t, "delete", "clusterrolebinding", "real") })
	kinds := namespacedKinds(t)
	compared := 0
	for _, of := range world.Applications {
		resources := inNamespace(t, of.Resources, kinds)
		if len(resources) > 0 {
			compared += len(resources)
			t.Run(of.App, func(t *testing.T) {
				t.Parallel()
				compare(t, of.App, resources)
			})
		}
	}
	t.Logf("%d resources", compared)
	if compared < 40 {
		t.Errorf("%d resources are too few to show anything", compared)
	}
}

// namespacedKinds returns the namespaced kinds that the cluster serves, without those
// that grant rights, which agents do not write for users.
func namespacedKinds(t *testing.T) []string {
	t.Helper()
	var kinds []string
	for line := range strings.Lines(hub.Kubectl(t, "api-resources", "--namespaced=true", "--no-headers")) {
		if fields := strings.Fields(line); len(fields) > 0 {
			kinds = append(kinds, fields[len(fields)-1])
		}
	}
	return slices.DeleteFunc(kinds, func(kind string) bool { return kind == "Role" || kind == "RoleBinding" })
}

// inNamespace returns the resources that an Application of one namespace may have here,
// and logs the others.
func inNamespace(t *testing.T, resources []map[string]any, kinds []string) []string {
	t.Helper()
	var texts []string
	for _, resource := range resources {
		kind, _ := resource["kind"].(string)
		metadata, ok := resource["metadata"].(map[string]any)
		if !ok || !slices.Contains(kinds, kind) {
			t.Logf("left out: %v %v, which no Application of one namespace may have here", kind, metadata["name"])
			continue
		}
		delete(metadata, "namespace")
		if kind == "Secret" { // Applications have them without values
			delete(resource, "data")
			delete(resource, "stringData")
		}
		texts = append(texts, string(kit.JSON(t, resource)))
	}
	return texts
}

func compare(t *testing.T, namespace string, resources []string) {
	text := kit.JSON(t, kit.Application(namespace, "app", "", kit.Data(application.ManifestKey, strings.Join(resources, "\n---\n"))))
	file := filepath.Join(t.TempDir(), "app.json")
	kit.Must(t, os.WriteFile(file, text, 0o600))
	namespaceFor(t, namespace)
	hub.Kubectl(t, "create", "-f", file)
	kit.Eventually(t, func() string {
		reconciled := hub.App(namespace, "app").Condition(t, application.ReconciledCondition)
		if reconciled.Status != metav1.ConditionTrue {
			return fmt.Sprintf("the agent has not carried out %s/app: %v", namespace, reconciled)
		}
		return ""
	})
	for _, arguments := range [][]string{{"app"}, {"-f", file}} {
		checkNoDiff(t, namespace, arguments...)
	}
}

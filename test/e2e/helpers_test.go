package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

// newNamespace makes a namespace for one test.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := kit.UniqueName("e2e")
	makeNamespace(t, name, "--wait=false")
	return name
}

// makeNamespace makes a namespace that goes with the test. Its Applications are
// deleted before the next test, whose requests would be mixed with theirs.
func makeNamespace(t *testing.T, name, wait string) {
	t.Helper()
	hub.CreateNamespace(t, name)
	t.Cleanup(func() {
		hub.Kubectl(t, "--namespace", name, "delete", "configmaps", "--selector", "krake.dev/cluster", "--timeout", kit.Timeout.String())
		hub.Kubectl(t, "delete", "namespace", name, wait)
	})
}

// tryKubectl runs kubectl with an input, and returns what it printed to both outputs.
func tryKubectl(t *testing.T, input string, arguments ...string) (string, error) {
	t.Helper()
	return kit.TryKubectl(context.WithoutCancel(t.Context()), hub.Cluster, input, arguments...)
}

// applicationYAML is an Application as a user writes it.
func applicationYAML(t *testing.T, namespace, name, manifest, schema string) string {
	t.Helper()
	return kit.YAML(t, kit.Application(namespace, name, manifest, kit.Schema(schema)))
}

// createApplication creates an Application by kubectl create -f and gives what
// kubectl printed.
func createApplication(t *testing.T, namespace, name, manifest, schema string) string {
	t.Helper()
	text, err := tryKubectl(t, applicationYAML(t, namespace, name, manifest, schema), "create", "-f", "-")
	if err != nil {
		t.Fatalf("create %s: %v\n%s", name, err, text)
	}
	return text
}

// document reads a status document of an Application.
func document(t *testing.T, namespace, name, key string) any {
	t.Helper()
	text, _ := kit.Field(hub.Get(t, kit.ConfigMaps, namespace, name), "data", key).(string)
	if text == "" {
		return nil
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s of %s: %v", key, name, err)
	}
	return value
}

// held reads what the agent says that it holds, without what it says of its
// documents.
func held(t *testing.T, namespace, name string) any {
	t.Helper()
	objects, _ := document(t, namespace, name, "inventory.local").([]any)
	for _, object := range objects {
		if entry, ok := object.(map[string]any); ok {
			delete(entry, "vouch")
		}
	}
	return objects
}

// parse reads a value from YAML.
func parse(t *testing.T, text string) any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// eventuallyState waits until the agent says so of an Application.
func eventuallyState(t *testing.T, want, namespace, name string) {
	t.Helper()
	kit.Eventually(t, func() string {
		cm := hub.Get(t, kit.ConfigMaps, namespace, name)
		if got := kit.Field(cm, "metadata", "labels", "krake.dev/state"); got != want {
			return fmt.Sprintf("state of %s is %v, want %v: %v", name, got, want, kit.Field(cm, "data", "status"))
		}
		return ""
	})
}

// events gives the notes of the Events about an Application that have the reason.
// Each has a twin about the object, which may have the same name.
func events(t *testing.T, namespace, name, reason string) []string {
	t.Helper()
	list, err := hub.Dynamic.Resource(kit.Events).Namespace(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, event := range list.Items {
		if kit.Field(&event, "regarding", "kind") == "ConfigMap" && kit.Field(&event, "regarding", "name") == name && kit.Field(&event, "reason") == reason {
			note, _ := kit.Field(&event, "note").(string)
			notes = append(notes, note)
		}
	}
	return notes
}

package e2e

import (
	"os"
	"strings"
	"testing"
)

// The example of the README works as it stands, and means what its comments say.
func TestTheReadmeExample(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("the README has no YAML example")
	}
	namespace := newNamespace(t)
	if text, err := tryKubectl(t, example, "--namespace", namespace, "create", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	eventuallyState(t, "RUNNING", namespace, "web")

	change(t, services, namespace, "web", `{"spec": {"type": "ClusterIP", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}}`)
	change(t, services, namespace, "web", `{"spec": {"selector": {"app": "other"}, "sessionAffinity": "ClientIP"}}`)
	eventuallyField(t, "web", services, namespace, "web", "spec", "selector", "app")
	eventuallyField(t, "None", services, namespace, "web", "spec", "sessionAffinity")
	eventuallyField(t, "ClusterIP", services, namespace, "web", "spec", "type")
	eventuallyField(t, 81, services, namespace, "web", "spec", "ports", 1, "port")
}

package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// The example of the README works unchanged, and does what its comments say.
func TestTheReadmeExample(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	kit.Must(t, err)
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("the README has no YAML example")
	}
	namespace := newNamespace(t)
	hub.KubectlWith(t, example, "--namespace", namespace, "create", "-f", "-")
	eventuallyState(t, "RUNNING", namespace, "web")

	hub.Change(t, kit.Services, namespace, "web", `{"spec": {"type": "ClusterIP", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}}`)
	hub.Change(t, kit.Services, namespace, "web", `{"spec": {"selector": {"app": "other"}, "sessionAffinity": "ClientIP"}}`)
	hub.EventuallyField(t, "web", kit.Services, namespace, "web", "spec", "selector", "app")
	hub.EventuallyField(t, "None", kit.Services, namespace, "web", "spec", "sessionAffinity")
	hub.EventuallyField(t, "ClusterIP", kit.Services, namespace, "web", "spec", "type")
	hub.EventuallyField(t, 81, kit.Services, namespace, "web", "spec", "ports", 1, "port")
}

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

// newNamespace creates a namespace for one test. Its Applications are deleted before
// the next test, because their requests would mix.
func newNamespace(t *testing.T) string {
	t.Helper()
	return hub.NewNamespaceOfApps(t, "e2e")
}

// tryKubectl runs kubectl with an input, and returns its stdout and stderr.
func tryKubectl(t *testing.T, input string, arguments ...string) (string, error) {
	t.Helper()
	return kit.TryKubectl(context.WithoutCancel(t.Context()), hub.Cluster, input, arguments...)
}

// applicationYAML returns an Application as a user writes it.
func applicationYAML(t *testing.T, namespace, name, manifest, schema string, options ...kit.Option) string {
	t.Helper()
	return kit.YAML(t, kit.Application(namespace, name, manifest, append(options, kit.Schema(schema))...))
}

// createApplication creates an Application with kubectl create -f.
func createApplication(t *testing.T, namespace, name, manifest, schema string, options ...kit.Option) {
	t.Helper()
	hub.KubectlWith(t, applicationYAML(t, namespace, name, manifest, schema, options...), "create", "-f", "-")
}

// document reads a status document of an Application.
func document(t *testing.T, namespace, name, key string) any {
	t.Helper()
	text, _ := kit.Field(hub.Get(t, kit.ConfigMaps, namespace, name), "data", key).(string)
	return parse(t, text)
}

// held reads the inventory of the agent, without its entries about documents.
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
	kit.Must(t, err)
	var value any
	kit.Must(t, json.Unmarshal(raw, &value))
	return value
}

// eventuallyState waits until an Application's status has this state.
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

// events returns the notes of the Events about the Application nginx with the reason.
// Each has a twin about the object, which may have the same name.
func events(t *testing.T, namespace, reason string) []string {
	t.Helper()
	list, err := hub.EventsV1().Events(namespace).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	kit.Must(t, err)
	var notes []string
	for _, event := range list.Items {
		if event.Regarding.Kind == "ConfigMap" && event.Regarding.Name == "nginx" && event.Reason == reason {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

// eventuallyNotes waits until [events] returns the expected notes.
func eventuallyNotes(t *testing.T, namespace, reason string, are func(notes []string) bool) {
	t.Helper()
	kit.Eventually(t, func() string {
		if notes := events(t, namespace, reason); !are(notes) {
			return fmt.Sprintf("the Events %s say %q", reason, notes)
		}
		return ""
	})
}

// defineKind defines a kind whose spec has these properties, as YAML, or changes its definition, and grants the agent
// the rights on it.
func defineKind(t *testing.T, group, kind, properties string) {
	t.Helper()
	singular := strings.ToLower(kind)
	hub.Apply(t, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]ss.%[1]s}
spec:
  group: %[1]s
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[3]ss, singular: %[3]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {%[4]s}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: krake-agent-%[3]ss
  labels: {krake.dev/aggregate-to-agent: "true"}
rules:
- {apiGroups: [%[1]s], resources: [%[3]ss], verbs: [get, list, watch, create, patch, delete]}
`, group, kind, singular, properties))
	hub.Kubectl(t, "wait", "--for=condition=Established", "crd/"+singular+"s."+group)
}

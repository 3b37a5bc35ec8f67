package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

// newNamespace creates a namespace for one test. Its Applications are deleted before
// the next test, because their requests would mix.
func newNamespace(t *testing.T) string {
	t.Helper()
	return hub.NewNamespaceOfApps(t, "e2e")
}

// createApplication creates an Application.
func createApplication(t *testing.T, namespace, name, manifest, schema string, options ...kit.Option) {
	t.Helper()
	hub.CreateApp(t, kit.Application(namespace, name, manifest, append(options, kit.Schema(schema))...))
}

// remove deletes an Application, and waits until it is gone.
func remove(t *testing.T, namespace, name string) {
	t.Helper()
	hub.App(namespace, name).Delete(t)
	hub.App(namespace, name).MustGo(t)
}

// resources are the kinds of objects that tests name as kubectl does, such as deployment/store.
var resources = map[string]schema.GroupVersionResource{
	"configmap": kit.ConfigMaps, "deployment": kit.Deployments, "service": kit.Services, "statefulset": kit.StatefulSets,
	"hpa":           {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	"ingress":       {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	"job":           jobs,
	"networkpolicy": {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	"pdb":           {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	"tempo":         {Group: "pace.example.com", Version: "v1", Resource: "tempos"},
	"tune":          {Group: "air.example.com", Version: "v1", Resource: "tunes"},
}

// find reads an object that is named as kubectl does.
func find(t *testing.T, namespace, object string) *unstructured.Unstructured {
	t.Helper()
	kind, name, _ := strings.Cut(object, "/")
	return hub.Get(t, resources[kind], namespace, name)
}

// change patches such an object as another client.
func change(t *testing.T, namespace, object string, kind types.PatchType, patch string) error {
	t.Helper()
	resource, name, _ := strings.Cut(object, "/")
	client := hub.Dynamic.Resource(resources[resource]).Namespace(namespace)
	return kit.ErrorOf(client.Patch(t.Context(), name, kind, []byte(patch), metav1.PatchOptions{FieldManager: "other"}))
}

// jsonPath returns values of an object as kubectl get prints them; empty if it has none.
func jsonPath(t *testing.T, object *unstructured.Unstructured, path string) string {
	t.Helper()
	if object == nil {
		return ""
	}
	parsed := jsonpath.New("").AllowMissingKeys(true)
	kit.Must(t, parsed.Parse("{"+path+"}"))
	var text strings.Builder
	kit.Must(t, parsed.Execute(&text, object.Object))
	return text.String()
}

// look is jsonPath of an object that is named as kubectl does.
func look(t *testing.T, namespace, object, path string) string {
	t.Helper()
	return jsonPath(t, find(t, namespace, object), path)
}

// as returns a client that acts as another user.
func as(t *testing.T, user string) kubernetes.Interface {
	t.Helper()
	config := hub.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	client, err := kubernetes.NewForConfig(config)
	kit.Must(t, err)
	return client
}

// userOf returns a client of a user with these verbs on the objects of a resource in a namespace, and no other right.
func userOf(t *testing.T, namespace, resource string, verbs ...string) kubernetes.Interface {
	t.Helper()
	hub.Make(t, namespace, fmt.Sprintf(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: mallory}, rules: [{apiGroups: [""], resources: [%s], verbs: ["%s"]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: mallory}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
`, resource, strings.Join(verbs, `", "`)))
	return as(t, "mallory")
}

// document reads a status document of an Application.
func document(t *testing.T, namespace, name, key string) any {
	t.Helper()
	text, _ := kit.Field(hub.Get(t, kit.ConfigMaps, namespace, name), "data", key).(string)
	return parse(t, text)
}

// held reads the objects in the inventory of the agent.
func held(t *testing.T, namespace, name string) any {
	t.Helper()
	inventory, _ := document(t, namespace, name, "inventory.local").(map[string]any)
	return inventory["objects"]
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
	plural := strings.ToLower(kind) + "s"
	hub.Make(t, "", kit.Definition(group, kind, "{type: object, properties: {spec: {type: object, properties: {"+properties+"}}}}")+fmt.Sprintf(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: krake-agent-%[2]s
  labels: {krake.dev/aggregate-to-agent: "true"}
rules:
- {apiGroups: [%[1]s], resources: [%[2]s], verbs: [get, list, watch, create, patch, delete]}
`, group, plural))
}

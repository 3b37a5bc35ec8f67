package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	eventsV1    = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// newNamespace makes a namespace for one test.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("e2e-%06d", rand.IntN(1e6))
	makeNamespace(t, name, "--wait=false")
	return name
}

// makeNamespace makes a namespace that goes with the test. Its Applications are
// deleted before the next test, whose requests would be mixed with theirs.
func makeNamespace(t *testing.T, name, wait string) {
	t.Helper()
	if err := env.installation.Look(); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "create", "namespace", name)
	t.Cleanup(func() {
		kubectl(t, "--namespace", name, "delete", "configmaps", "--selector", "krake.dev/cluster", "--timeout", timeout.String())
		kubectl(t, "delete", "namespace", name, wait)
	})
}

// kubectl runs kubectl as the administrator and gives what it printed.
func kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	text, err := tryKubectl(t, "", arguments...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, text)
	}
	return text
}

// tryKubectl runs kubectl with an input and gives what it printed to both outputs.
func tryKubectl(t *testing.T, input string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.Command(env.cluster.Kubectl(), append([]string{"--kubeconfig", env.cluster.Kubeconfig()}, arguments...)...)
	command.Stdin = strings.NewReader(input)
	text, err := command.CombinedOutput()
	return string(text), err
}

// applicationYAML is an Application as a user writes it.
func applicationYAML(t *testing.T, namespace, name, manifest, schema string) string {
	t.Helper()
	data := map[string]any{"spec.manifest": manifest}
	if schema != "" {
		data["spec.observer_schema"] = schema
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": name, "namespace": namespace,
			"annotations": map[string]any{"krake.dev/application": "v1"},
		},
		"data": data,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// createApplication creates an Application by kubectl create -f and gives what
// kubectl printed.
func createApplication(t *testing.T, namespace, name, manifest, schema string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(path, []byte(applicationYAML(t, namespace, name, manifest, schema)), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubectl(t, "create", "-f", path)
}

// get reads an object, or gives nil if there is none.
func get(t *testing.T, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := env.client.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // or the kind is not served
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// change patches an object as somebody else would: by a merge patch.
func change(t *testing.T, resource schema.GroupVersionResource, namespace, name, patch string, subresources ...string) {
	t.Helper()
	_, err := env.client.Resource(resource).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: "somebody"}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
}

// field reads a value of an object by its path: fields, and indices of lists.
func field(object *unstructured.Unstructured, path ...any) any {
	var value any
	if object != nil {
		value = object.Object
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := value.(map[string]any)
			value = fields[step]
		case int:
			items, _ := value.([]any)
			if step >= len(items) {
				return nil
			}
			value = items[step]
		}
	}
	return value
}

// document reads a status document of an Application.
func document(t *testing.T, namespace, name, key string) any {
	t.Helper()
	text, _ := field(get(t, configMaps, namespace, name), "data", key).(string)
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

// eventually waits until check finds nothing to complain about.
func eventually(t *testing.T, check func() (complaint string)) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", timeout, complaint)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// eventuallyField waits until a field of an object has a value.
func eventuallyField(t *testing.T, want any, resource schema.GroupVersionResource, namespace, name string, path ...any) {
	t.Helper()
	eventually(t, func() string {
		got := field(get(t, resource, namespace, name), path...)
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return ""
		}
		return fmt.Sprintf("%v of %s %s is %v, want %v", path, resource.Resource, name, got, want)
	})
}

// eventuallyState waits until the agent says so of an Application.
func eventuallyState(t *testing.T, want, namespace, name string) {
	t.Helper()
	eventually(t, func() string {
		cm := get(t, configMaps, namespace, name)
		if got := field(cm, "metadata", "labels", "krake.dev/state"); got != want {
			return fmt.Sprintf("state of %s is %v, want %v: %v", name, got, want, field(cm, "data", "status"))
		}
		return ""
	})
}

// eventuallyGone waits until an object is no more.
func eventuallyGone(t *testing.T, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	eventually(t, func() string {
		if get(t, resource, namespace, name) == nil {
			return ""
		}
		return resource.Resource + " " + name + " is still there"
	})
}

// events gives the notes of the Events about an Application that have the reason.
// Each has a twin about the object, which may have the same name.
func events(t *testing.T, namespace, name, reason string) []string {
	t.Helper()
	list, err := env.client.Resource(eventsV1).Namespace(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, event := range list.Items {
		if field(&event, "regarding", "kind") == "ConfigMap" && field(&event, "regarding", "name") == name && field(&event, "reason") == reason {
			note, _ := field(&event, "note").(string)
			notes = append(notes, note)
		}
	}
	return notes
}

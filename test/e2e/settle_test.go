package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

// calm is for how long nothing is written once there is nothing to do: longer
// than a status may be kept back.
const calm = 2 * time.Second

// writes leaves what changes something.
func writes(requests []kit.Request) []kit.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r kit.Request) bool { return !r.IsWrite() })
}

// of leaves the requests that concern objects of a resource.
func of(resource string, requests []kit.Request) []kit.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r kit.Request) bool { return r.Object.Resource != resource })
}

// accepted leaves the requests that the API server has carried out.
func accepted(requests []kit.Request) []kit.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r kit.Request) bool { return r.Status.Code >= http.StatusMultipleChoices })
}

// awaitCalm waits until the agent has nothing to write in a namespace any more.
func awaitCalm(t *testing.T, namespace string) {
	t.Helper()
	auditMark(t).Calm(t, calm, ofAgent, kit.Request.IsWrite, kit.In(namespace))
}

// checkCalm fails if anything was written in a namespace since the mark, or
// still is.
func checkCalm(t *testing.T, m kit.Mark, namespace, what string) {
	t.Helper()
	awaitCalm(t, namespace)
	for _, r := range writes(m.Requests(t, ofAgent, kit.In(namespace))) {
		t.Errorf("%s: want no write, got %s", what, r)
	}
}

// eventuallyCondition waits for a condition of an Application and gives its message.
func eventuallyCondition(t *testing.T, namespace, name, kind, status, reason string) (message string) {
	t.Helper()
	kit.Eventually(t, func() string {
		condition := conditionOf(t, namespace, name, kind)
		if condition["status"] == status && condition["reason"] == reason {
			message, _ = condition["message"].(string)
			return ""
		}
		return fmt.Sprintf("condition %s of %s is %v, want %s %s", kind, name, condition, status, reason)
	})
	return message
}

// eventuallyReconciled waits until all objects are as the Application says,
// whether they are healthy or not.
func eventuallyReconciled(t *testing.T, namespace, name string) {
	t.Helper()
	kit.Eventually(t, func() string {
		condition := conditionOf(t, namespace, name, "Reconciled")
		if condition["status"] == "True" {
			return ""
		}
		return fmt.Sprintf("%s is not reconciled: %v", name, condition)
	})
}

// conditionOf reads a condition of an Application, nil if it has none.
func conditionOf(t *testing.T, namespace, name, kind string) map[string]any {
	t.Helper()
	status, _ := document(t, namespace, name, "status").(map[string]any)
	conditions, _, err := unstructured.NestedSlice(status, "conditions")
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range conditions {
		if condition, ok := item.(map[string]any); ok && condition["type"] == kind {
			return condition
		}
	}
	return nil
}

// checkNames fails if a text does not name all that it has to name.
func checkNames(t *testing.T, text string, names ...string) {
	t.Helper()
	for _, name := range names {
		if !strings.Contains(text, name) {
			t.Errorf("%q does not name %s", text, name)
		}
	}
}

// createWishing creates an Application with annotations beyond the usual one,
// without our domain: "mode".
func createWishing(t *testing.T, namespace, name, manifest, schema string, wishes map[string]string) {
	t.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(applicationYAML(t, namespace, name, manifest, schema)), &object.Object); err != nil {
		t.Fatal(err)
	}
	annotations := maps.Clone(object.GetAnnotations())
	for wish, value := range wishes {
		annotations["krake.dev/"+wish] = value
	}
	object.SetAnnotations(annotations)
	createObject(t, &object)
}

// createObject creates an object as kubectl create -f does.
func createObject(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if said, err := tryKubectl(t, string(text), "create", "-f", "-"); err != nil {
		t.Fatalf("create %s %s: %v\n%s", object.GetKind(), object.GetName(), err, said)
	}
}

// stored is an object as a backup has it: without what is of its first life only.
func stored(object *unstructured.Unstructured) *unstructured.Unstructured {
	stored := object.DeepCopy()
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences"} {
		unstructured.RemoveNestedField(stored.Object, "metadata", name)
	}
	return stored
}

// wish sets an annotation of ours on an Application: "mode", "observe".
func wish(t *testing.T, namespace, name, annotation, value string) {
	t.Helper()
	hub.Kubectl(t, "--namespace", namespace, "annotate", "--overwrite", "configmap", name, "krake.dev/"+annotation+"="+value)
}

// respec gives an Application another manifest.
func respec(t *testing.T, namespace, name, manifest string) {
	t.Helper()
	if err := tryRespec(t, namespace, name, manifest); err != nil {
		t.Fatal(err)
	}
}

func tryRespec(t *testing.T, namespace, name, manifest string) error {
	text, err := json.Marshal(map[string]any{"data": map[string]any{"spec.manifest": manifest}})
	if err != nil {
		return err
	}
	_, err = hub.Dynamic.Resource(kit.ConfigMaps).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: "somebody"})
	return err
}

// withoutAgent does something while the agent is down.
func withoutAgent(t *testing.T, do func()) {
	t.Helper()
	if err := both.StopAgent(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := both.StartAgent(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	do()
}

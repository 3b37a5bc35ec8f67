package kubectl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// imported are the kinds of the objects.
var imported = []schema.GroupVersionResource{
	kit.Deployments, kit.Services, {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
}

// objectsToImport are as many as a namespace of some size has. Half of them were applied, the others
// were created.
func objectsToImport(kind int) string {
	var documents []string
	for n := kind; n < 25; n += 2 {
		documents = append(documents, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-%[1]d, labels: {app: web-%[1]d}, annotations: {note: "of the author"}}
spec:
  selector: {matchLabels: {app: web-%[1]d}}
  template:
    metadata: {labels: {app: web-%[1]d}}
    spec:
      containers:
      - name: web
        image: web:1
        env: [{name: LEVEL, value: "3"}]
        ports: [{containerPort: 80}]
        resources: {requests: {cpu: 100m}}
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
`, n), fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: web-%[1]d}
spec: {selector: {app: web-%[1]d}, ports: [{port: 80}]}
`, n))
	}
	return strings.Join(documents, "---")
}

// A namespace with 50 objects comes under observation, and is given up again. The agent writes its
// marks, and nothing else; afterwards nothing is left of them.
func TestImportWritesOnlyMarks(t *testing.T) {
	kit.Long(t, "objects of many kinds")
	namespace := kit.UniqueName("import")
	namespaceFor(t, namespace)
	hub.KubectlWith(t, objectsToImport(0), "apply", "-n", namespace, "-f", "-")
	hub.KubectlWith(t, objectsToImport(1), "create", "-n", namespace, "-f", "-")
	hub.Kubectl(t, "-n", namespace, "autoscale", "deployment/web-1", "--max=5")
	hub.Kubectl(t, "-n", namespace, "scale", "deployment/web-0", "deployment/web-1", "--replicas=3")
	hub.Kubectl(t, "-n", namespace, "patch", "deployment/web-0", "deployment/web-1", "--field-manager=injector",
		`--patch={"spec": {"template": {"spec": {"containers": [{"name": "proxy", "image": "proxy:1"}]}}}}`)
	hub.Kubectl(t, "-n", namespace, "set", "image", "deployment/web-1", "web=web:2")
	var before map[string]*unstructured.Unstructured
	kit.EventuallyTrue(t, "the controllers have not seen all Deployments", func() bool {
		before = objectsOf(t, namespace)
		return !slices.ContainsFunc(slices.Collect(maps.Values(before)), func(object *unstructured.Unstructured) bool {
			return object.GetKind() == "Deployment" && kit.Field(object, "status", "observedGeneration") != object.GetGeneration()
		})
	})

	mark := hub.Mark(t)
	said, _ := krake(t, "import", "shop", "--all", "-n", namespace)
	if want := fmt.Sprintf("application %s/shop created, with 51 objects\n", namespace); !strings.HasSuffix(said, want) {
		t.Errorf("%s\nwant %s", said, want)
	}
	app := hub.App(namespace, "shop")
	app.MustBe(t, application.StateRunning)
	checkNoDiff(t, namespace, "shop")
	time.Sleep(10 * time.Second) // only time shows that nothing more is written
	checkMarksOnly(t, mark, namespace, len(before))
	for name, object := range objectsOf(t, namespace) {
		if diff := gocmp.Diff(kit.Field(before[name], "spec"), kit.Field(object, "spec")); diff != "" {
			t.Errorf("%s has another spec: -before +after\n%s", name, diff)
		}
	}

	app.Delete(t)
	app.MustGo(t)
	after := objectsOf(t, namespace)
	for name, was := range before {
		if diff := gocmp.Diff(lasting(was), lasting(after[name])); diff != "" {
			t.Errorf("%s was left with a trace: -before +after\n%s", name, diff)
		}
	}
}

// checkMarksOnly fails if the agent wrote more than its marks since the mark of the audit log, once to
// each object.
func checkMarksOnly(t *testing.T, mark kit.Mark, namespace string, objects int) {
	t.Helper()
	writes := mark.Requests(t, kit.In(namespace), kit.By(kit.LocalAgent), kit.Request.IsWork, kit.Request.IsAccepted,
		func(r kit.Request) bool { return r.Name() != "shop" && r.Object.Resource != "events" })
	for _, write := range writes {
		for _, path := range write.PatchPaths(t) {
			if !strings.HasPrefix(path, "/metadata/labels") && !strings.HasPrefix(path, "/metadata/annotations") {
				t.Errorf("the agent wrote %s: %s", path, write)
			}
		}
	}
	if len(writes) != objects {
		t.Errorf("%d writes for %d objects:\n%s", len(writes), objects, kit.List(writes))
	}
}

// objectsOf returns the objects of a namespace by their names, without what the control plane and the
// webhook create there.
func objectsOf(t *testing.T, namespace string) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for _, resource := range imported {
		list, err := hub.Dynamic.Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		kit.Must(t, err)
		for i := range list.Items {
			found[resource.Resource+"/"+list.Items[i].GetName()] = &list.Items[i]
		}
	}
	return found
}

// lasting returns an object without what counts its changes: a Deployment counts those of its
// annotations, too.
func lasting(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	object.SetResourceVersion("")
	object.SetGeneration(0)
	entries := slices.DeleteFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Subresource == "status" })
	for i := range entries {
		entries[i].Time = nil
	}
	slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int { // they are in the order of the times
		return cmp.Or(strings.Compare(a.Manager, b.Manager), strings.Compare(a.Subresource, b.Subresource))
	})
	object.SetManagedFields(entries)
	delete(object.Object, "status")
	return object.Object
}

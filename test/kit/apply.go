package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Locate returns the resource of a manifest, and a client for it. It sets the namespace of the manifest if its kind has
// one and the manifest names none, and removes it if its kind has none.
func (p *Plane) Locate(object *unstructured.Unstructured, namespace string) (resource string, client dynamic.ResourceInterface, err error) {
	kind := object.GroupVersionKind()
	mapping, err := p.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		object.SetNamespace("")
		return mapping.Resource.Resource, p.Dynamic.Resource(mapping.Resource), nil
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	return mapping.Resource.Resource, p.Dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}

// Make applies documents, as kubectl apply --server-side does, and waits until the API server serves the kinds that they
// define. The function that it returns deletes the objects.
func (p *Plane) Make(t testing.TB, namespace, documents string) (undo func()) {
	t.Helper()
	decoded, err := manifest.Decode([]byte(documents))
	Must(t, err)
	var deletions []func() error
	for _, document := range decoded {
		fields, _ := document.(map[string]any)
		object := &unstructured.Unstructured{Object: fields}
		_, client, err := p.Locate(object, namespace)
		Must(t, err)
		Must(t, ErrorOf(client.Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "kubectl", Force: true})))
		deletions = append(deletions, func() error { return client.Delete(lasting(t), object.GetName(), metav1.DeleteOptions{}) })
		if object.GetKind() == "CustomResourceDefinition" {
			EventuallyTrue(t, object.GetName()+" is not served", func() bool {
				conditions := Field(p.Get(t, Definitions, "", object.GetName()), "status", "conditions")
				return strings.Contains(fmt.Sprint(conditions), "status:True type:Established")
			})
		}
	}
	return func() {
		for _, each := range slices.Backward(deletions) {
			Must(t, each())
		}
	}
}

// Definition returns the definition of a namespaced kind in version v1. The group is a whole name, and the schema is YAML in
// flow style.
func Definition(group, kind, schema string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]ss.%[1]s}
spec:
  group: %[1]s
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[3]ss, singular: %[3]s}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: %[4]s}}]
`, group, kind, strings.ToLower(kind), schema)
}

// ServerSideApply returns what kubectl apply --server-side --force-conflicts makes of an object, as a dry run.
func ServerSideApply(ctx context.Context, client dynamic.ResourceInterface, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	options := metav1.ApplyOptions{FieldManager: "kubectl", Force: true, DryRun: []string{metav1.DryRunAll}}
	return client.Apply(ctx, manifest.GetName(), manifest, options)
}

// ClientSideApply returns what kubectl apply would change in an object to which a former manifest was applied, as a dry
// run.
func ClientSideApply(ctx context.Context, client dynamic.ResourceInterface, former, manifest, live *unstructured.Unstructured) (diff string, err error) {
	kind, patch, err := threeWay(former, manifest, live)
	if err != nil || string(patch) == "{}" {
		return "", err
	}
	after, err := client.Patch(ctx, manifest.GetName(), kind, patch, metav1.PatchOptions{FieldManager: "kubectl", DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", fmt.Errorf("%s: %w", patch, err)
	}
	if diff := Difference(live, after); diff != "" {
		return fmt.Sprintf("%s\n%s", patch, diff), nil
	}
	return "", nil
}

// threeWay makes the patch of kubectl apply. A null in a manifest is a value that the user leaves to others. Server-side
// apply does not touch it either; only kubectl's patch would remove it.
func threeWay(former, manifest, live *unstructured.Unstructured) (kind types.PatchType, patch []byte, err error) {
	var texts [3][]byte
	for i, object := range []any{withoutNulls(former.Object), withoutNulls(manifest.Object), live.Object} {
		if texts[i], err = json.Marshal(object); err != nil {
			return "", nil, err
		}
	}
	typed, unknown := scheme.Scheme.New(manifest.GroupVersionKind())
	if unknown != nil {
		patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(texts[0], texts[1], texts[2])
		return types.MergePatchType, patch, err
	}
	patchMeta, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return "", nil, err
	}
	patch, err = strategicpatch.CreateThreeWayMergePatch(texts[0], texts[1], texts[2], patchMeta, true)
	return types.StrategicMergePatchType, patch, err
}

// withoutNulls returns a copy without the fields that are null.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for name, field := range value {
			if field != nil {
				fields[name] = withoutNulls(field)
			}
		}
		return fields
	case []any:
		elements := make([]any, 0, len(value))
		for _, element := range value {
			elements = append(elements, withoutNulls(element))
		}
		return elements
	}
	return value
}

// Difference returns the difference of two objects, without what each write changes.
func Difference(a, b *unstructured.Unstructured) string {
	return cmp.Diff(Content(a), Content(b))
}

// Content returns an object without what each write changes.
func Content(object *unstructured.Unstructured) map[string]any {
	fields := object.DeepCopy().Object
	delete(fields, "status")
	for _, name := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(fields, "metadata", name)
	}
	unstructured.RemoveNestedField(fields, "metadata", "annotations", "deployment.kubernetes.io/revision")
	unstructured.RemoveNestedField(fields, "metadata", "annotations", "deprecated.daemonset.template.generation")
	for _, kind := range []string{"labels", "annotations"} { // without the agent's marks
		marks, _, _ := unstructured.NestedMap(fields, "metadata", kind)
		maps.DeleteFunc(marks, func(name string, _ any) bool { return strings.HasPrefix(name, application.Prefix) })
		if unstructured.RemoveNestedField(fields, "metadata", kind); len(marks) > 0 {
			metadata, _ := fields["metadata"].(map[string]any)
			metadata[kind] = marks
		}
	}
	return fields
}

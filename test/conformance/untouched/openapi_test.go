package untouched_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/openapi3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/kit"
)

const concert = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: concerts.stage.example.com}
spec:
  group: stage.example.com
  scope: Namespaced
  names: {kind: Concert, plural: concerts, singular: concert}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name, voice]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, voice: {type: string, default: first}, beats: {type: integer}}
`

// A list of a custom resource is aligned by the keys in its definition. Another manager
// inserts an element in front, and changes the order: neither is drift. A changed value
// is found in its new place.
func TestKeysOfACustomResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "untouched-keys")
	w.ensure(t, kit.Definitions, decode(t, concert))
	desired := decode(t, `{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening},
		spec: {parts: [{name: horn, beats: 3}, {name: horn, voice: second, beats: 4}]}}`)
	kind := gvr.GroupVersionKind{Group: "stage.example.com", Version: "v1", Kind: "Concert"}
	kit.EventuallyTrue(t, "Concert is not served", func() bool {
		w.mapper.Reset()
		_, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil
	})
	served := w.openAPI(t, kind.GroupVersion())
	ref := w.place(t, desired)
	kit.Must(t, kit.ErrorOf(w.client(ref).Create(t.Context(), w.placed(desired, ref), w.options)))
	observed := observe(t, desired, `{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening}, spec: {parts: [
		{name: null, beats: null}, {name: null, beats: null}, {observer_schema_list_min_length: 2, observer_schema_list_max_length: 0}]}}`)
	observed = observed.Align(served.Of(observed.ID()))

	live := w.patch(t, ref, `[{"op": "replace", "path": "/spec/parts", "value": [
		{"name": "drum", "beats": 1}, {"name": "horn", "voice": "second", "beats": 4}, {"name": "horn", "beats": 3}]}]`)
	if found := observed.Compare(desired, live); len(found) > 0 {
		t.Errorf("another order and another element are %v", pathsOf(found))
	}
	live = w.patch(t, ref, `[{"op": "replace", "path": "/spec/parts/2/beats", "value": 7}]`)
	want := schema.Patch{{Op: "replace", Path: "/spec/parts/2/beats", Value: int64(3)}}
	if diff := cmp.Diff(want, observed.Patch(desired, live)); diff != "" {
		t.Errorf("patch: -want +got\n%s", diff)
	}
}

// A cluster reports the same about built-in types as client-go.
func TestKeysOfBuiltInTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "untouched-builtin")
	served := w.openAPI(t, gvr.GroupVersion{Group: "apps", Version: "v1"})
	id := manifest.ID{APIVersion: "apps/v1", Kind: "Deployment"}
	for _, path := range [][]string{{"containers"}, {"containers", "*", "ports"}, {"containers", "*", "env"}, {"containers", "*", "args"}, {"volumes"}, {"tolerations"}} {
		var keys [][]schema.Key
		for _, known := range []*apitypes.Types{apitypes.BuiltIn(), served} {
			place := known.Of(id).Field("spec").Field("template").Field("spec")
			for _, name := range path {
				if name == "*" {
					place = place.Element()
				} else {
					place = place.Field(name)
				}
			}
			keys = append(keys, place.Keys())
		}
		if diff := cmp.Diff(keys[0], keys[1]); diff != "" {
			t.Errorf("%v: -client-go +cluster\n%s", path, diff)
		}
	}
}

// openAPI reads the types of some groups, as an agent would.
func (w *world) openAPI(t *testing.T, versions ...gvr.GroupVersion) *apitypes.Types {
	t.Helper()
	root := openapi3.NewRoot(server.Discovery().OpenAPIV3())
	schemas := map[string]*spec.Schema{}
	for _, version := range versions {
		kit.EventuallyTrue(t, version.String()+" is not documented", func() bool {
			document, err := root.GVSpec(version)
			if err != nil {
				return false
			}
			maps.Copy(schemas, document.Components.Schemas)
			return true
		})
	}
	served, err := apitypes.FromOpenAPI(schemas)
	kit.Must(t, err)
	return served
}

func (w *world) patch(t *testing.T, ref manifest.Ref, operations string) object {
	t.Helper()
	live, err := w.client(ref).Patch(t.Context(), ref.Name, types.JSONPatchType, []byte(operations), metav1.PatchOptions{FieldManager: "somebody"})
	kit.Must(t, err)
	return live.Object
}

func observe(t *testing.T, desired object, document string) schema.Schema {
	t.Helper()
	set, findings := schema.Mangle([]any{desired}, []any{decode(t, document)})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return set[0]
}

func decode(t *testing.T, yaml string) object {
	t.Helper()
	documents, err := manifest.Decode([]byte(yaml))
	kit.Must(t, err)
	return documents[0].(object)
}

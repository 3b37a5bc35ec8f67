package policies

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/kit"
)

// legacy has Habitats that the definition of the Habitat operator let in, which checks
// nothing.
var legacy = map[string]struct{ of, stored string }{
	"a name that is too long":      {v1beta2Habitat, "metadata: {name: " + x(53) + "}"},
	"peers":                        {v1beta2Habitat, "metadata: {name: peers}"},
	"v1beta2 with a flat service":  {v1beta2Habitat, "spec: {service: {name: a, topology: leader}}"},
	"an empty image":               {v1beta2Habitat, inV1beta2(`image: ""`)},
	"a size that is none":          {v1beta2Habitat, inStorage("size: 10 gigs")},
	"a bind without a group":       {v1beta2Habitat, inService("bind: [{name: a, service: b}]")},
	"a topology that there is not": {v1beta2Habitat, inService("topology: ring")},
}

// The status of an earlier invalid Habitat can be written, and the Habitat can be
// deleted, with its finalizers.
func TestHabitatsOfBefore(t *testing.T) {
	namespace := newNamespace(t)
	resource := server.Dynamic.Resource(habitats).Namespace(namespace)
	stored := map[string]*unstructured.Unstructured{}
	withoutRules(t, func() {
		for what, c := range legacy {
			of := habitatOf(c.of, c.stored)
			if of.GetName() == "shop" {
				of.SetName("")
				of.SetGenerateName("shop-")
			}
			of.SetFinalizers([]string{"example.org/theirs"})
			created, err := resource.Create(t.Context(), of, metav1.CreateOptions{})
			if err != nil {
				t.Errorf("%s: %v", what, err)
				continue
			}
			stored[what] = created
		}
	})
	for what, of := range stored {
		t.Run(what, func(t *testing.T) {
			name := of.GetName()
			server.Change(t, habitats, namespace, name, `{"status":{"state":"FAILED","message":"x"}}`, "status")
			server.Change(t, habitats, namespace, name, `{"metadata":{"annotations":{"note":"x"}}}`)
			kit.Must(t, resource.Delete(t.Context(), name, metav1.DeleteOptions{}))
			server.Change(t, habitats, namespace, name, `{"metadata":{"finalizers":null}}`)
		})
	}
}

// withoutRules calls do while the definition is that of the Habitat operator, which has
// almost no schema.
func withoutRules(t *testing.T, do func()) {
	t.Helper()
	const name = "habitats.habitat.sh"
	shipped := kit.Field(server.Get(t, kit.Definitions, "", name), "spec", "versions", 0, "schema")
	change := func(ctx context.Context, schema any) {
		patch := kit.JSON(t, []any{map[string]any{"op": "replace", "path": "/spec/versions/0/schema", "value": schema}})
		kit.Must(t, kit.ErrorOf(server.Dynamic.Resource(kit.Definitions).Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})))
	}
	defer func() {
		ctx := context.WithoutCancel(t.Context())
		change(ctx, shipped)
		awaitRules(ctx, t, true)
	}()
	change(t.Context(), map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}})
	awaitRules(t.Context(), t, false)
	do()
}

// awaitRules waits until the server applies the rules for Habitats, or applies none.
func awaitRules(ctx context.Context, t *testing.T, has bool) {
	t.Helper()
	kit.EventuallyTrue(t, fmt.Sprintf("that the server has rules for Habitats is not %t", has), func() bool {
		_, err := dryCreation(ctx, administrator, "default", habitatOf(v1beta2Habitat, inV1beta2("count: two")))
		return (err != nil) == has
	})
}

package mutate_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Whatever a user writes, there are refusals or a desired state that agrees
// with itself, and the same ones each time.
func FuzzDesire(f *testing.F) {
	f.Add(song().Manifest, song().ObserverSchema)
	f.Add(song().Manifest, "")
	for _, refused := range []string{"kind: List\n", "- a\n- {apiVersion: v1, kind: A, metadata: {name: b, namespace: c}}\n"} {
		f.Add(refused, refused)
	}
	f.Fuzz(func(t *testing.T, manifest, observerSchema string) {
		spec := application.Spec{Manifest: manifest, ObserverSchema: observerSchema}
		first, refusals := mutate.Desire(spec, key3())
		second, refusedAgain := mutate.Desire(spec, key3())
		equal(t, "refusals", messages(refusals), messages(refusedAgain))
		equal(t, "desired state", first.Resources, second.Resources)
		equal(t, "schemas", first.Mangled.Documents(), second.Mangled.Documents())
		if len(refusals) == 0 {
			checkDesired(t, first)
		}
	})
}

func checkDesired(t *testing.T, desired mutate.Desired) {
	t.Helper()
	if len(desired.Schemas) != len(desired.Resources) || len(desired.Manifest) != len(desired.Resources) {
		t.Fatalf("%d schemas and %d manifests of %d resources", len(desired.Schemas), len(desired.Manifest), len(desired.Resources))
	}
	for i, resource := range desired.Resources {
		for _, difference := range desired.Schemas[i].Compare(resource, resource) {
			if difference.Kind == schema.Changed || difference.Kind == schema.Unknown {
				t.Errorf("resource %d differs from itself: %v", i, difference)
			}
		}
	}
}

package mutate_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

type object = map[string]any

// song is the example of the Krake documentation, Application controller.
func song() application.Spec {
	return application.Spec{
		Manifest: `apiVersion: v1
kind: Song
metadata:
  name: top50
spec:
  key1: kilestbo
  key2: lelavabo
  rythms:
  - bubam
  - badum
---
apiVersion: v1
kind: Artist
metadata:
  name: gainsbourg
spec:
  birth: 1928
  death: 1991
`,
		ObserverSchema: `apiVersion: v1
kind: Song
metadata:
  name: top50
spec:
  key1: null
  key3: null
  rythms:
  - null
  - observer_schema_list_min_length: 1
    observer_schema_list_max_length: 2
`,
	}
}

// key3 is a value that an agent learns of the Song.
func key3() []object {
	return []object{{
		"apiVersion": "v1", "kind": "Song", "metadata": object{"name": "top50"},
		"spec": object{"key3": "kilestlai"},
	}}
}

func desire(t *testing.T, spec application.Spec, learned []object) mutate.Desired {
	t.Helper()
	desired, refusals := mutate.Desire(spec, learned)
	check.Must(t, refusals.ToAggregate())
	return desired
}

// The schemas have the order of the resources, whatever order the user wrote.
func TestDesireSchemasGoWithResources(t *testing.T) {
	spec := song()
	spec.ObserverSchema = "apiVersion: v1\nkind: Artist\nmetadata: {name: gainsbourg}\n---\n" + spec.ObserverSchema
	desired := desire(t, spec, nil)
	for i, resource := range desired.Resources {
		check.Equal(t, fmt.Sprintf("kind of schema %d", i), resource["kind"], any(desired.Schemas[i].ID().Kind))
	}
}

// Webhook and agent compute the same result only if it depends on nothing else.
func TestDesireIsAPureFunction(t *testing.T) {
	learned := key3()
	first := desire(t, song(), learned)
	state, mangled := runtime.DeepCopyJSONValue(list(first.Resources)), list(first.Mangled.Documents())
	second := desire(t, song(), learned)
	check.Equal(t, "the second desired state", state, any(list(second.Resources)))
	check.Equal(t, "the second schema", mangled, list(second.Mangled.Documents()))
	check.Equal(t, "what was learned", key3(), learned)

	second.Resources[0]["spec"].(object)["key3"] = "changed by the caller"
	check.Equal(t, "the first desired state", state, any(list(first.Resources)))
	check.Equal(t, "what was learned", key3(), learned)
	check.Equal(t, "the manifest", decode(t, song().Manifest), second.Manifest)
}

// A forged status.learned can make an Application unreadable, but has no other effect.
func TestDesireRefusesLearnedValuesWithoutIdentity(t *testing.T) {
	_, refusals := mutate.Desire(song(), []object{{"spec": object{"key3": "hunter2"}}})
	check.Equal(t, "refusals", []any{
		"data.status.learned: Invalid value: resource 0: the resource lacks apiVersion, kind, metadata.name",
	}, messages(refusals))
}

// Forged learned values change no value of the manifest, and add only observed fields. An edit
// of the spec could do the same.
func TestDesireTrustsNoLearnedValueOverTheManifest(t *testing.T) {
	forged := key3()
	forged[0]["spec"] = object{"key1": "forged", "key2": "forged", "key4": "forged", "rythms": []any{"forged", "forged", "forged"}}
	forged = append(forged, object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "forged"}})
	desired := desire(t, song(), forged)
	check.Equal(t, "desired state", decode(t, song().Manifest), desired.Resources)
}

func decode(t *testing.T, text string) []object {
	t.Helper()
	resources, err := manifest.Decode([]byte(text))
	check.Must(t, err)
	objects := make([]object, 0, len(resources))
	for _, resource := range resources {
		objects = append(objects, resource.(object))
	}
	return objects
}

func list(objects []object) []any {
	items := make([]any, 0, len(objects))
	for _, fields := range objects {
		items = append(items, fields)
	}
	return items
}

func messages(refusals field.ErrorList) []any {
	texts := make([]any, 0, len(refusals))
	for _, refusal := range refusals {
		texts = append(texts, refusal.Error())
	}
	return texts
}

package apitypes_test

import (
	"os"
	"testing"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

func concerts(t *testing.T) *apitypes.Types {
	t.Helper()
	document, err := os.ReadFile("testdata/concerts.json")
	check.Must(t, err)
	types, err := apitypes.FromOpenAPI(document)
	check.Must(t, err)
	return types
}

var concert = manifest.ID{APIVersion: "stage.example.com/v1", Kind: "Concert"}

// A definition says how the API treats the parts of a value.
func TestStructureOfDefinedTypes(t *testing.T) {
	for _, c := range []struct {
		path string
		want schema.Structure
	}{
		{"parts", schema.KeyedList},
		{"guests", schema.SetList},
		{"encores", schema.AtomicList},
		{"ordered", schema.AtomicList},
		{"hall", schema.AtomicMap},
		{"light", schema.Struct},
		{"notes", schema.Map},
		{"extras", schema.Map},
		{"absent", schema.Plain},
	} {
		check.Equal(t, c.path, c.want, concerts(t).Of(concert).Field("spec").Field(c.path).Structure())
	}
	metadata := concerts(t).Of(concert).Field("metadata")
	check.Equal(t, "finalizers", schema.SetList, metadata.Field("finalizers").Structure())
	inner := concerts(t).Of(concert).Field("spec").Field("extras").Field("inner")
	check.Equal(t, "an object in one of unknown fields", schema.Map, inner.Structure())
	for _, path := range []string{"anything", "start"} {
		place := concerts(t).Of(concert).Field("spec").Field(path)
		if structure := place.Structure(); structure == schema.Struct || structure == schema.AtomicMap {
			t.Errorf("%s is closed: %d", path, structure)
		}
		check.Empty(t, path, place.Keys())
	}
}

// Keys have the defaults of their definition, and a zero is a value.
func TestKeysOfDefinedTypes(t *testing.T) {
	spec := concerts(t).Of(concert).Field("spec")
	check.Equal(t, "keys", []schema.Key{
		{Name: "name", KeepsZero: true}, {Name: "voice", Default: "first", KeepsZero: true}, {Name: "desk", Default: 0., KeepsZero: true},
	}, spec.Field("parts").Keys())
	check.Empty(t, "keys of a set", spec.Field("guests").Keys())
	check.Equal(t, "a field that is no key", schema.Key{Name: "title", Default: "Finale", KeepsZero: true}, spec.Field("encores").Key("title"))
}

// Elements are found by key, in a default schema and in one that states its own key.
func TestRefineByDefinedTypes(t *testing.T) {
	const desired = `{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening}, spec: {parts: [{name: horn, beats: 3}, {name: horn, voice: second, beats: 4}],
		guests: [ann, bob], hall: {name: big}, encores: [{beats: 1}, {title: Coda, beats: 2}]}}`
	const live = `spec: {parts: [{name: horn, voice: "", desk: 0, beats: 1}, {name: horn, voice: first, desk: 0, beats: 3}, {name: horn, voice: second, desk: 0, beats: 4}],
		guests: [eve, bob, ann], hall: {name: big, seats: 9}, encores: [{title: Coda, beats: 2}, {title: Finale, beats: 5}]}`
	whole, err := schema.Default(decode(t, desired))
	check.Must(t, err)
	stated, findings := schema.MangleTyped([]any{decode(t, desired)}, []any{decode(t, `{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening}, spec: {
		encores: [{beats: null}, {beats: null}, {observer_schema_list_min_length: 2, observer_schema_list_max_length: 0, observer_schema_list_key: [title]}]}}`)}, concerts(t).Of)
	check.Empty(t, "findings", findings)
	for _, c := range []struct {
		why  string
		s    schema.Schema
		want []string
	}{
		{"default", whole, []string{"spec.encores", "spec.guests", "spec.hall.seats", "spec.parts"}},
		{"stated", stated[0], []string{"spec.encores[1].beats", "spec.encores"}},
	} {
		var paths []string
		for _, difference := range concerts(t).Refine(c.s, decode(t, desired)).Compare(decode(t, desired), decode(t, live)) {
			paths = append(paths, difference.Path.String())
		}
		check.Equal(t, c.why, c.want, paths)
	}
}

// An empty value that the server stores may not be absent. The server drops those of metadata.
func TestEmptyValuesOfDefinedTypes(t *testing.T) {
	desired := decode(t, `{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening, labels: {}, finalizers: []},
		spec: {notes: {}, guests: [], light: {}, anything: {inner: {}}, parts: [{name: horn}]}}`)
	observed, err := schema.Default(desired)
	check.Must(t, err)
	refined := concerts(t).Refine(observed, desired)
	pathsIn := func(live string) (paths []string) {
		for _, difference := range refined.Compare(desired, decode(t, live)) {
			paths = append(paths, difference.Path.String())
		}
		return paths
	}
	check.Equal(t, "absent", []string{"spec.anything", "spec.guests", "spec.light", "spec.notes"}, pathsIn("spec: {parts: [{name: horn}]}"))
	check.Empty(t, "present", pathsIn("spec: {notes: {}, guests: [], light: {}, anything: {inner: {}}, parts: [{name: horn}]}"))
	check.Equal(t, "filled", []string{"spec.light.red"},
		pathsIn("spec: {notes: {high: c}, guests: [ann], light: {red: 1}, anything: {inner: {more: 1}}, parts: [{name: horn}]}"))
	written := decode(t, "spec: {anything: {}, parts: [{name: horn}]}")
	check.Empty(t, "dropped by the server", refined.Accept(refined.Forms(desired, written)).Compare(desired, written))
}

// A document without types, or with an invalid one, is an error.
func TestInvalidOpenAPIDocuments(t *testing.T) {
	for why, document := range map[string]string{
		"no JSON":              "{",
		"an unknown list type": `{"components": {"schemas": {"a": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "heap"}}}}`,
	} {
		_, err := apitypes.FromOpenAPI([]byte(document))
		check.Equal(t, why+" is an error", true, err != nil)
	}
	types, err := apitypes.FromOpenAPI([]byte("{}"))
	check.Must(t, err)
	check.Equal[any](t, "type of a kind that the document does not have", nil, types.Of(concert))
}

package lens

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// FuzzEdit toggles fields that a browser names. The observer schema itself does not change. A field that is
// toggled twice is as before: if it is a leaf of a map, or is not in a map that the schema has.
func FuzzEdit(f *testing.F) {
	const document = `{"kind":"Service","metadata":{"name":"web"},"spec":{"type":null,"ports":[{"port":null},{"observer_schema_list_min_length":1,"observer_schema_list_max_length":2}]}}`
	for _, toggles := range []string{
		`[]`, `[{"place":["spec","type"]}]`, `[{"place":["spec","clusterIP"]}]`, `[{"place":["spec","ports",0,"port"]}]`, `[{"place":["spec","ports",3,"name"]}]`,
		`[{"place":["spec","ports"],"length":4}]`, `[{"place":["spec","other"],"length":4},{"place":["spec","other"],"length":4}]`, `[{"place":[]}]`, `[{"place":[0]}]`,
		`[{"place":["spec","type","below",0]}]`, `[{"place":["metadata","name"]},{"place":["spec"]}]`,
	} {
		f.Add(document, toggles)
	}
	f.Add(`{"spec":{"ports":[]}}`, `[{"place":["spec","ports",0,"port"]}]`)
	f.Add(`{"spec":{"ports":[7]}}`, `[{"place":["spec","ports"],"length":-1},{"place":["spec","ports",0]}]`)
	f.Add(`{"a":{"b":null}}`, `[{"place":["a","b"]},{"place":["a","c","d"]}]`)
	f.Fuzz(func(t *testing.T, text, chosen string) {
		values, err := manifest.Decode([]byte(text))
		var toggles []Toggle
		if err != nil || len(values) != 1 || json.Unmarshal([]byte(chosen), &toggles) != nil {
			return
		}
		document, ok := values[0].(map[string]any)
		if !ok {
			return
		}
		for _, toggle := range toggles {
			for _, step := range toggle.Place {
				if step.Index > 1000 { // a place is one of a live object: an index is as small as its lists
					return
				}
			}
		}
		before := runtime.DeepCopyJSON(document)
		Edit(document, toggles)
		if !reflect.DeepEqual(before, document) {
			t.Fatalf("the document was changed: %v, it was %v", document, before)
		}
		for _, toggle := range toggles {
			if toggle.Length > 0 || !isSimple(document, toggle) {
				continue
			}
			if after := Edit(Edit(document, []Toggle{toggle}), []Toggle{toggle}); !reflect.DeepEqual(before, after) {
				t.Errorf("%s toggled twice: %v, it was %v", toggle.Place, after, before)
			}
		}
	})
}

// isSimple reports whether a field is a leaf of a map with other fields, or is not in a map that is there. A
// map that loses its last field is removed, and so is a field that is more than a leaf.
func isSimple(document map[string]any, toggle Toggle) bool {
	var node any = document
	for i, step := range toggle.Place {
		fields, ok := node.(map[string]any)
		if !ok || step.Index >= 0 {
			return false
		}
		below, known := fields[step.Field]
		if i == len(toggle.Place)-1 {
			return known && below == nil && len(fields) > 1 || !known && len(fields) > 0
		}
		node = below
	}
	return false
}

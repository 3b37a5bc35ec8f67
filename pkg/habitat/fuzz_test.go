package habitat_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	strict "sigs.k8s.io/json"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// Any object leads to readable mistakes, one a line, or to a workload that the API accepts
// unchanged.
func FuzzParse(f *testing.F) {
	for _, text := range seeds(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil || object == nil {
			t.Skip()
		}
		before := runtime.DeepCopyJSON(object)
		h, mistakes := habitat.Parse(object)
		check.Equal(t, "the object afterwards", before, object)
		again, told := habitat.Parse(object)
		if !reflect.DeepEqual(h, again) || !reflect.DeepEqual(texts(mistakes), texts(told)) {
			t.Errorf("the second time it is something else: %v, %v", texts(mistakes), texts(told))
		}
		for _, mistake := range mistakes {
			if text := mistake.Error(); mistake.Field == "" || len(text) > 2000 || strings.Contains(text, "\n") {
				t.Errorf("a mistake at %q: %.3000q", mistake.Field, text)
			}
		}
		if len(mistakes) == 0 {
			isTaken(t, h)
		}
	})
}

// seeds returns Habitats, valid ones and invalid ones.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	objects := []map[string]any{decode(f, greeter), decode(f, old)}
	files, err := filepath.Glob("testdata/golden/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("no samples", err)
	}
	for _, file := range files {
		if object, ok := decode(f, read(f, file))["habitat"].(map[string]any); ok { // one is a peer file
			objects = append(objects, object)
		}
	}
	for path, value := range map[string]any{
		"customVersion": "v1", "spec.v1beta2": "x", "spec.v1beta2.env.1.valueFrom": map[string]any{"resourceFieldRef": map[string]any{"resource": "a", "divisor": "1Mi"}},
		"spec.v1beta2.env.0.value": int64(1), "spec.v1beta2.persistentStorage.size": "1e99", "spec.v1beta2.service.bind.0": nil, "metadata.name": "peers",
	} {
		objects = append(objects, set(f, objects[0], path, value))
	}
	var texts [][]byte
	for _, object := range objects {
		text, err := json.Marshal(object)
		check.Must(f, err)
		texts = append(texts, text)
	}
	return texts
}

// isTaken checks that the workload has an identity and a default schema. Its API type must
// have all of the fields, and preserve the observed ones.
func isTaken(t *testing.T, h habitat.Habitat) {
	t.Helper()
	workload := h.Workload(habitat.DefaultFilesImage)
	_, err := manifest.Identify(workload)
	check.Fails(t, "identity", err, "")
	observed, err := schema.Default(workload)
	check.Must(t, err)
	text, err := json.Marshal(workload)
	check.Must(t, err)
	var typed any = &appsv1.StatefulSet{}
	if h.CustomVersion == habitat.V1beta1 {
		typed = &appsv1.Deployment{}
	}
	if unknown, err := strict.UnmarshalStrict(text, typed); err != nil || len(unknown) > 0 {
		t.Fatalf("%v, %v: %s", err, unknown, text)
	}
	kept, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	check.Must(t, err)
	for _, difference := range observed.ByValue().Compare(workload, kept) {
		if difference.Want != "" { // such variables have no value afterwards
			t.Errorf("%s: %v becomes %v", difference.Path, difference.Want, difference.Have)
		}
	}
}

package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensiontypes "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

type object = map[string]any

// subject is a resource that is compared: its manifest, and the object of a server for it,
// without drift and with one changed value.
type subject struct {
	name                   string
	desired, live, drifted object
	// types are the API's types, for structured-merge-diff.
	types managedfields.TypeConverter
}

func subjects(t testing.TB) []subject {
	t.Helper()
	builtIn := applyconfigurations.NewTypeConverter(scheme.Scheme)
	return []subject{deployment(t, builtIn), definition(t), configMap(t, builtIn)}
}

func deployment(t testing.TB, types managedfields.TypeConverter) subject {
	t.Helper()
	documents := decoded(t, file(t, "testdata/deployment.yaml"))
	return newSubject(t, "deployment", types, documents[0], documents[1], func(live object) {
		containers := at(live, "spec", "template", "spec")["containers"].([]any)
		containers[0].(object)["image"] = "registry.example.org/shop/catalogue:4.2.0"
	})
}

// The definition has 2,000 lines: sections with the same fields, each in several forms, as in
// generated definitions.
func definition(t testing.TB) subject {
	t.Helper()
	extensions := runtime.NewScheme()
	kit.Must(t, apiextensions.AddToScheme(extensions))
	text := file(t, "testdata/definition.yaml")
	documents := decoded(t, text)
	spec := func(definition object) object {
		version := at(definition, "spec")["versions"].([]any)[0].(object)
		return at(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
	}
	for name := range strings.FieldsSeq("backup cache connections encryption logging maintenance memory monitoring " +
		"network placement recovery replication roles storage tracing upgrade users") {
		spec(documents[0])[name] = decoded(t, strings.ReplaceAll(text, "NAME", name))[2]
	}
	return newSubject(t, "crd", extensiontypes.NewTypeConverter(extensions), documents[0], documents[1], func(live object) {
		at(spec(live), "backup", "properties", "schedule")["maxLength"] = int64(9)
	})
}

// The ConfigMap has 400 values of 512 bytes.
func configMap(t testing.TB, types managedfields.TypeConverter) subject {
	t.Helper()
	data := object{}
	for i := range 400 {
		line := fmt.Sprintf("option-%03d = the value of an option, as programs have them\n", i)
		data[fmt.Sprintf("settings-%03d.conf", i)] = strings.Repeat(line, 9)[:512]
	}
	desired := object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"name": "settings", "namespace": "shop", "labels": object{"app.kubernetes.io/part-of": "shop"}},
		"data":     data,
	}
	return newSubject(t, "configmap", types, desired, object{}, func(live object) {
		values := at(live, "data")
		values["settings-200.conf"] = values["settings-200.conf"].(string)[:511] + "!"
	})
}

// newSubject makes the object that a server returns for a manifest, with the fields
// that it adds to every object, and to this one.
func newSubject(t testing.TB, name string, types managedfields.TypeConverter, desired, added object, drift func(live object)) subject {
	t.Helper()
	live := copied(t, desired)
	merge(live, added)
	applied, err := typedOf(t, types, desired).ToFieldSet()
	kit.Must(t, err)
	fields, err := applied.ToJSON()
	kit.Must(t, err)
	metadata := at(live, "metadata")
	metadata["uid"], metadata["resourceVersion"] = "3f0c2a52-51a4-4c8e-9d0b-7f6d1b0a2e11", "184467"
	metadata["creationTimestamp"] = "2026-03-02T08:15:01Z"
	metadata["managedFields"] = []any{object{
		"manager": "krake", "operation": "Apply", "apiVersion": desired["apiVersion"],
		"time": "2026-03-02T08:17:20Z", "fieldsType": "FieldsV1", "fieldsV1": decoded(t, string(fields))[0],
	}}
	live = copied(t, live)
	drifted := copied(t, live)
	drift(drifted)
	return subject{name: name, desired: desired, live: live, drifted: copied(t, drifted), types: types}
}

// copied returns an equal object that shares no memory with the first, as after decoding: engines
// must read strings to compare them.
func copied(t testing.TB, original object) object {
	t.Helper()
	text, err := json.Marshal(original)
	kit.Must(t, err)
	return decoded(t, string(text))[0]
}

func file(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	kit.Must(t, err)
	return string(text)
}

func decoded(t testing.TB, text string) (objects []object) {
	t.Helper()
	documents, err := manifest.Decode([]byte(text))
	kit.Must(t, err)
	for _, document := range documents {
		objects = append(objects, document.(object))
	}
	return objects
}

// merge adds fields to an object; the elements of lists are paired by index.
func merge(into, added object) {
	for name, value := range added {
		switch value := value.(type) {
		case object:
			if fields, ok := into[name].(object); ok {
				merge(fields, value)
				continue
			}
		case []any:
			if items, ok := into[name].([]any); ok {
				for i := range value {
					merge(items[i].(object), value[i].(object))
				}
				continue
			}
		}
		into[name] = value
	}
}

func at(value object, names ...string) object {
	for _, name := range names {
		value = value[name].(object)
	}
	return value
}

package bench

import (
	"bytes"
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
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

type object = map[string]any

// subject is a resource that is measured: its manifest, and the object of a server for
// it, without drift and with one changed value.
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
	text, err := os.ReadFile("testdata/deployment.yaml")
	kit.Must(t, err)
	documents, err := manifest.Decode(text)
	kit.Must(t, err)
	desired, added := documents[0].(object), documents[1].(object)
	return newSubject(t, "deployment", types, desired, added, func(live object) {
		containers := at(live, "spec", "template", "spec")["containers"].([]any)
		containers[0].(object)["image"] = "registry.example.org/shop/catalogue:4.2.0"
	})
}

func definition(t testing.TB) subject {
	t.Helper()
	extensions := runtime.NewScheme()
	kit.Must(t, apiextensions.AddToScheme(extensions))
	desired := customResourceDefinition(t)
	return newSubject(t, "crd", extensiontypes.NewTypeConverter(extensions), desired, decoded(t, []byte(acceptance)), func(live object) {
		field := at(openAPISchema(live), "properties", "spec", "properties", "backup", "properties", "schedule")
		field["maxLength"] = int64(9)
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
func newSubject(
	t testing.TB, name string, types managedfields.TypeConverter, desired, added object, drift func(live object),
) subject {
	t.Helper()
	live := copied(t, desired)
	merge(live, added)
	metadata := at(live, "metadata")
	metadata["uid"] = "3f0c2a52-51a4-4c8e-9d0b-7f6d1b0a2e11"
	metadata["resourceVersion"] = "184467"
	metadata["creationTimestamp"] = "2026-03-02T08:15:01Z"
	if desired["spec"] != nil { // a ConfigMap has no generation
		metadata["generation"] = int64(2)
	}
	metadata["managedFields"] = managed(t, types, desired, added)
	live = copied(t, live)
	drifted := copied(t, live)
	drift(drifted)
	return subject{name: name, desired: desired, live: live, drifted: copied(t, drifted), types: types}
}

// managed returns the managedFields: one manager applied the manifest, and a controller
// added metadata and status. The defaults have no manager.
func managed(t testing.TB, types managedfields.TypeConverter, desired, added object) []any {
	t.Helper()
	entries := []any{object{
		"manager": "krake", "operation": "Apply", "apiVersion": desired["apiVersion"],
		"time": "2026-03-02T08:17:20Z", "fieldsType": "FieldsV1", "fieldsV1": fieldsV1(t, types, desired),
	}}
	if added["status"] == nil {
		return entries
	}
	written := object{"apiVersion": desired["apiVersion"], "kind": desired["kind"]}
	for _, name := range []string{"metadata", "status"} {
		if added[name] != nil {
			written[name] = added[name]
		}
	}
	return append(entries, object{
		"manager": "kube-controller-manager", "operation": "Update", "apiVersion": desired["apiVersion"], "subresource": "status",
		"time": "2026-03-02T08:17:44Z", "fieldsType": "FieldsV1", "fieldsV1": fieldsV1(t, types, written),
	})
}

// fieldsV1 encodes the fields of an object as a server does, without those that
// identify the object.
func fieldsV1(t testing.TB, types managedfields.TypeConverter, fields object) object {
	t.Helper()
	set, err := typedOf(t, types, fields).ToFieldSet()
	kit.Must(t, err)
	text, err := set.Difference(fieldpath.NewSet(
		fieldpath.MakePathOrDie("apiVersion"),
		fieldpath.MakePathOrDie("kind"),
		fieldpath.MakePathOrDie("metadata", "name"),
		fieldpath.MakePathOrDie("metadata", "namespace"),
	)).ToJSON()
	kit.Must(t, err)
	return decoded(t, text)
}

// copied returns an equal object that shares no memory with the first, as after
// decoding.
func copied(t testing.TB, original object) object {
	t.Helper()
	text, err := json.Marshal(original)
	kit.Must(t, err)
	return decoded(t, text)
}

func decoded(t testing.TB, text []byte) object {
	t.Helper()
	documents, err := manifest.Decode(bytes.TrimSpace(text))
	kit.Must(t, err)
	return documents[0].(object)
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

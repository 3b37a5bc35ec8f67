package reconcile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// Our marks are on every object, are observed, and appear in no document, whatever the schema
// observes.
func TestMarksStayOutOfDocuments(t *testing.T) {
	cases := []struct{ name, labels, schema string }{
		{"labels and annotations of the manifest are observed one by one", `labels: {team: x}, annotations: {note: x}`, ``},
		{"there are none in the manifest", ``, ``},
		{"empty ones in the manifest", `labels: {}, annotations: {}`, ``},
		{"observed as a whole, beside those of the manifest", `labels: {team: x}, annotations: {note: x}`, `labels: null, annotations: null`},
		{"observed as a whole, and there are none but ours", ``, `labels: null, annotations: null`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			observed := ""
			if c.schema != "" {
				observed = fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config, %s}, data: {a: null}}`, c.schema)
			}
			w := newWorld(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: config, %s}, data: {a: "1"}}`, c.labels), observed)
			w.mustReconcile(t)
			checkNoMarks(t, w)

			// From here on, the observers' projection is published.
			w.checkQuiet(t)
			checkNoMarks(t, w)
			w.change(t, "ConfigMap config", func(live *unstructured.Unstructured) { live.Object["data"] = map[string]any{"a": "2"} })
			w.mustReconcile(t)
			checkNoMarks(t, w)
			w.checkQuiet(t)

			object := &unstructured.Unstructured{Object: w.objects["ConfigMap config"]}
			ours := []string{application.OwnerAnnotation, application.OwnerUIDAnnotation}
			for _, annotation := range ours {
				if object.GetAnnotations()[annotation] == "" {
					t.Errorf("the object lacks %s", annotation)
				}
			}
		})
	}
}

func checkNoMarks(t *testing.T, w *world) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(w.cm.Data)) {
		// The stored schema is the user's, unchanged.
		if strings.HasPrefix(key, "status.") && key != application.MangledSchemaKey && strings.Contains(w.cm.Data[key], application.Prefix) {
			t.Errorf("%s: %s", key, w.cm.Data[key])
		}
	}
}

// A mark that another client removes or changes is restored like any drift. The proof is the
// exception: without it the object is not ours.
func TestMarksAreObserved(t *testing.T) {
	w := running(t, oneObject, "")
	w.change(t, "ConfigMap config", func(live *unstructured.Unstructured) {
		live.SetLabels(map[string]string{application.OwnedByLabel: "x", "team": "theirs"})
	})
	w.mustReconcile(t)
	w.checkCalls(t, "Observe", "Patch ConfigMap config replace /metadata/labels/krake.dev~1owned-by", "Write status", "Start")
	labels := (&unstructured.Unstructured{Object: w.objects["ConfigMap config"]}).GetLabels()
	check.Equal(t, "somebody else's label", "theirs", labels["team"])
}

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/internal/ignored"
	"github.com/krake-observer/krake-observer/test/check"
)

const ofArgoCD = `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop, namespace: argocd}
spec:
  destination: {namespace: demo}
  ignoreDifferences:
  - group: "*"
    kind: "*"
    jsonPointers: [/spec/template/spec/containers/0/image, /spec/template/spec/volumes/1]
    jqPathExpressions: ['.spec.template.spec.volumes[] | select(.name == "token")', '.spec | keys']
`

// The namespace of the other tool counts if the user names none.
func TestReadOrigin(t *testing.T) {
	h := newHub(t)
	for _, c := range []struct{ why, flag, text, want, fails string }{
		{"the same namespace", "demo", ofArgoCD, "demo", ""},
		{"no namespace in the file", "mine", strings.Replace(ofArgoCD, "namespace: demo", "server: x", 1), "mine", ""},
		{"two namespaces", "mine", ofArgoCD, "", "app.yaml:2: the objects of the Argo CD Application shop are in namespace demo, and the flag --namespace is mine: leave one of the two out"},
		{"two objects", "demo", ofArgoCD + "\n---\n" + ofArgoCD, "", "has 2 objects: it has to have one"},
		{"another object", "demo", "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop}}", "", "ConfigMap is not supported"},
		{"too large", "demo", strings.Repeat("# a comment\n", 400_000) + ofArgoCD, "", "the maximum is 4194304"},
	} {
		t.Run(c.why, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "app.yaml")
			check.Must(t, os.WriteFile(file, []byte(c.text), 0o600))
			e, _, _ := h.environment()
			e.hub.Namespace = &c.flag
			creation := creation{environment: e, namespace: "mine"}
			origin, namespace, err := creation.readOrigin(file)
			check.Fails(t, "error", err, c.fails)
			check.Equal(t, "namespace", c.want, namespace)
			check.Equal(t, "origin", c.fails == "", origin != nil)
		})
	}
}

// What the other tool ignores is in the manifest with the value of today, and is not observed.
func TestTranslate(t *testing.T) {
	source, err := ignored.Read(parsed(t, ofArgoCD))
	check.Must(t, err)
	from := &origin{source, ignored.NewTranslation(source)}
	live := found{Unstructured: &unstructured.Unstructured{Object: parsed(t, applied)}}
	resource, proposed, err := importOf(live.Object, defaulting(t), nil)
	check.Must(t, err)
	proposed.left = nil
	proposed, err = from.translate(t.Context(), proposed, resource, live, nil)
	check.Must(t, err)
	says, err := proposed.text()
	check.Must(t, err)
	text, err := textOf(resource)
	check.Must(t, err)
	check.Must(t, changes(t, live.Object, text, says))
	check.Equal(t, "not translated", []string{
		`spec.ignoreDifferences[0].jqPathExpressions[0]: ".spec.template.spec.volumes[] | select(.name == \"token\")": it selects no field of the imported objects now`,
		`spec.ignoreDifferences[0].jqPathExpressions[1]: ".spec | keys": it selects no field of the imported objects now`,
	}, from.translation.Untranslated())
	golden(t, "translated-schema.yaml", says)
}

// Only marked objects are imported. An error says what the mark is.
func TestManaged(t *testing.T) {
	source, err := ignored.Read(parsed(t, ofArgoCD))
	check.Must(t, err)
	from := &origin{source, ignored.NewTranslation(source)}
	object := func(name, id string) found {
		return found{Unstructured: &unstructured.Unstructured{Object: parsed(t, `{apiVersion: v1, kind: Service, metadata: {name: `+name+`, namespace: demo, annotations: {argocd.argoproj.io/tracking-id: "`+id+`"}}}`)}}
	}
	all := []found{object("a", "shop:/Service:demo/a"), object("b", "other:/Service:demo/b")}
	managed, err := from.managed(all, "demo")
	check.Must(t, err)
	check.Equal(t, "managed", []found{all[0]}, managed)
	_, err = from.managed(all[1:], "demo")
	check.Fails(t, "none", err, "no object in namespace demo is marked as one of the Argo CD Application shop, by the annotation argocd.argoproj.io/tracking-id: argocd_shop:GROUP/KIND:NAMESPACE/NAME, or the annotation")
	managed, err = (*origin)(nil).managed(all, "demo")
	check.Must(t, err)
	check.Equal(t, "without a file", all, managed)
}

package create

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/internal/ignored"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// applied was changed by others after kubectl has applied it.
//
//go:embed testdata/applied.yaml
var applied string

// song is of a kind whose lists are found by their places, as far as the command knows.
//
//go:embed testdata/song.yaml
var song string

// The manifest has what the author has set, with the values of today. A plain value that others have
// set stays in the manifest, and is not observed.
func TestImportOf(t *testing.T) {
	var out strings.Builder
	for _, c := range []struct{ why, live, proposed string }{
		{"it was created, and others have changed it", clitest.Scaled, "kubectl-edit writes it: spec.template.spec.containers[0].image"},
		{"elements that are found by their places keep them", song, "other writes it: spec.loud, spec.parts[0], metadata.annotations.restarted, spec.limits"},
	} {
		t.Run(c.why, func(t *testing.T) {
			live := clitest.Parsed(t, c.live)
			resource, proposed, err := importOf(live, defaulting(t), nil)
			check.Must(t, err)
			text, err := env.YAML(resource)
			check.Must(t, err)
			fmt.Fprintf(&out, "== %s\n%s", c.why, text)
			says, err := proposed.text()
			check.Must(t, err)
			if !strings.Contains(says, c.proposed) {
				t.Errorf("observer schema:\n%swant %s", says, c.proposed)
			}
			check.Must(t, changes(t, live, text, says))
		})
	}
	clitest.Golden(t, "import.txt", out.String())
}

var errOffline = errors.New("there is no cluster")

// changes returns what the agent would change in a live object, by the test of the command.
func changes(t *testing.T, live map[string]any, resource, observerSchema string) error {
	t.Helper()
	object := found{Unstructured: &unstructured.Unstructured{Object: live}}
	c := creation{name: "web", namespace: "demo", imported: []found{object}}
	app := c.application("web", []compose.Part{{Object: compose.Object{ID: object.id(), Text: []byte(resource)}, Schema: []byte(observerSchema)}})
	return c.changesNothing(context.Background(), app, func(string) (env.Objects, error) { return env.Objects{}, errOffline })
}

// An Application that would change an object is not created.
func TestImportChangesNothing(t *testing.T) {
	live := clitest.Parsed(t, clitest.Service)
	check.Must(t, changes(t, live, clitest.Service, ""))
	err := changes(t, live, strings.Replace(clitest.Service, "80", "81", 1), "")
	check.Fails(t, "another port", err, "service/web: spec.ports differs from the manifest")
}

// Some objects are kept by others.
func TestExclusion(t *testing.T) {
	marked := clitest.MarkedAs("web", "1", clitest.Parsed(t, clitest.Service))
	for why, c := range map[string]struct {
		live map[string]any
		want string
	}{
		"no other keeps it":   {clitest.Parsed(t, clitest.Service), ""},
		"of an Application":   {marked, "it belongs to the Application demo/web"},
		"it is on its way":    {clitest.Parsed(t, `{apiVersion: v1, kind: Service, metadata: {name: web, deletionTimestamp: "2026-01-02T03:04:05Z"}}`), "it is being deleted"},
		"a controller has it": {clitest.Parsed(t, `{apiVersion: v1, kind: Pod, metadata: {name: web, ownerReferences: [{kind: ReplicaSet, name: web, uid: "1", apiVersion: apps/v1, controller: true}]}}`), "a controller has created it"},
		"another owner":       {clitest.Parsed(t, `{apiVersion: v1, kind: Pod, metadata: {name: web, ownerReferences: [{kind: ReplicaSet, name: web, uid: "1", apiVersion: apps/v1}]}}`), ""},
		"an Application":      {clitest.Parsed(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, annotations: {krake.dev/application: v1}}}`), "it is an Application"},
	} {
		check.Equal(t, why, c.want, (found{Unstructured: &unstructured.Unstructured{Object: c.live}}).exclusion())
	}
	_, _, err := importOf(clitest.Parsed(t, strings.ReplaceAll(strings.Replace(createdBy, "OPERATION", "Update", 1), "kubectl-create", "kube-controller-manager")), nil, nil)
	check.Fails(t, "of the control plane", err, "the control plane has created it")
}

// What others have taken apart is taken over as a whole, so that the object can be created again.
func TestAsLive(t *testing.T) {
	for _, c := range []struct{ why, kind, applied, live, want string }{
		{"arguments, one of which was added", "apps/v1 Deployment",
			`{template: {spec: {containers: [{name: web, args: [serve, --port=80]}]}}}`,
			`{template: {spec: {containers: [{name: proxy}, {name: web, args: [--debug, serve, --port=80], tty: true}]}}}`,
			`{template: {spec: {containers: [{name: web, args: [--debug, serve, --port=80]}]}}}`},
		{"a port with another number", "v1 Service",
			`{ports: [{port: 80}, {port: 443}], type: ClusterIP}`,
			`{ports: [{port: 443, protocol: TCP}, {port: 81, protocol: TCP}], type: ClusterIP, clusterIP: 10.0.0.1}`,
			`{ports: [{port: 443, protocol: TCP}, {port: 81, protocol: TCP}], type: ClusterIP}`},
		{"a rule whose peers are gone", "networking.k8s.io/v1 NetworkPolicy",
			`{ingress: [{from: [{podSelector: {matchLabels: {a: b}}}]}]}`, `{ingress: [{ports: [{port: 80}]}]}`, `{ingress: [{ports: [{port: 80}]}]}`},
		{"a rule before another", "networking.k8s.io/v1 NetworkPolicy",
			`{ingress: [{from: [{podSelector: {matchLabels: {a: b}}}]}]}`, `{ingress: [{ports: [{port: 80}]}, {from: [{podSelector: {matchLabels: {a: b}}}]}]}`,
			`{ingress: [{ports: [{port: 80}]}, {from: [{podSelector: {matchLabels: {a: b}}}]}]}`},
		{"another source of a volume", "v1 Pod",
			`{volumes: [{name: data, emptyDir: {medium: Memory}}]}`, `{volumes: [{name: data, persistentVolumeClaim: {claimName: web}}]}`,
			`{volumes: [{name: data, persistentVolumeClaim: {claimName: web}}]}`},
		{"a zero that the server drops", "v1 Pod",
			`{hostNetwork: false, containers: [{name: web, tty: false, image: "web:1"}]}`, `{containers: [{name: web, image: "web:2", terminationMessagePath: /x}], dnsPolicy: Default}`,
			`{containers: [{name: web, image: "web:2"}]}`},
	} {
		version, kind, _ := strings.Cut(c.kind, " ")
		object := func(spec string) map[string]any {
			return clitest.Parsed(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: web, finalizers: [a/b], labels: {a: b}}, spec: %s, status: {x: y}}", version, kind, spec))
		}
		id, err := manifest.Identify(object("{}"))
		check.Must(t, err)
		want := object(c.want)
		want["metadata"] = map[string]any{"name": "web", "labels": map[string]any{"a": "b"}}
		delete(want, "status")
		check.Equal(t, c.why, want, asLive(object(c.applied), object(c.live), apitypes.BuiltIn().Of(id)))
	}
}

// A record of kubectl that is about another object, or about another version of the kind, does not count.
func TestImportOfACopiedRecord(t *testing.T) {
	const live = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"apiVersion": "VERSION", "kind": "ConfigMap", "metadata": {"name": "NAME"}, "data": {"a": "b"}}'}
  managedFields: [{manager: kubectl-create, operation: Apply, fieldsType: FieldsV1, fieldsV1: {f:data: {f:a: {}, f:c: {}}}}]
data: {a: b, c: d}
`
	for _, c := range []struct {
		version, name string
		want          map[string]any
	}{
		{"v1", "web", map[string]any{"a": "b"}},
		{"v1", "other", map[string]any{"a": "b", "c": "d"}},
		{"v2", "web", map[string]any{"a": "b", "c": "d"}},
	} {
		resource, _, err := importOf(clitest.Parsed(t, strings.NewReplacer("VERSION", c.version, "NAME", c.name).Replace(live)), nil, nil)
		check.Must(t, err)
		check.Equal(t, c.version+" "+c.name, map[string]any{"name": "web"}, resource["metadata"].(map[string]any))
		check.Equal(t, c.version+" "+c.name, c.want, resource["data"].(map[string]any))
	}
	err := changes(t, clitest.Parsed(t, clitest.Service), strings.Replace(clitest.Service, "name: web", "name: other", 1), "")
	check.Fails(t, "another object", err, "v1 Service other is none of the imported objects")
}

// The volume that a claim got is not in its manifest: there is another one when it is created again.
func TestImportOfAClaim(t *testing.T) {
	resource, _, err := importOf(clitest.Parsed(t, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
  managedFields:
  - {manager: helm, operation: Apply, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:accessModes: {}, f:storageClassName: {}}}}
  - {manager: kube-controller-manager, operation: Update, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:volumeName: {}}}}
spec: {accessModes: [ReadWriteOnce], storageClassName: fast, volumeName: pvc-123}
`), nil, nil)
	check.Must(t, err)
	check.Equal(t, "spec", map[string]any{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "fast"}, resource["spec"].(map[string]any))
}

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
	h := clitest.NewHub(t)
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
			e, _, _ := h.Environment()
			e.Hub.Namespace = &c.flag
			creation := creation{Environment: e, namespace: "mine"}
			origin, namespace, err := creation.readOrigin(file)
			check.Fails(t, "error", err, c.fails)
			check.Equal(t, "namespace", c.want, namespace)
			check.Equal(t, "origin", c.fails == "", origin != nil)
		})
	}
}

// What the other tool ignores is in the manifest with the value of today, and is not observed.
func TestTranslate(t *testing.T) {
	source, err := ignored.Read(clitest.Parsed(t, ofArgoCD))
	check.Must(t, err)
	from := &origin{source, ignored.NewTranslation(source)}
	live := found{Unstructured: &unstructured.Unstructured{Object: clitest.Parsed(t, applied)}}
	resource, proposed, err := importOf(live.Object, defaulting(t), nil)
	check.Must(t, err)
	proposed.left = nil
	proposed, err = from.translate(t.Context(), proposed, resource, live, nil)
	check.Must(t, err)
	says, err := proposed.text()
	check.Must(t, err)
	text, err := env.YAML(resource)
	check.Must(t, err)
	check.Must(t, changes(t, live.Object, text, says))
	check.Equal(t, "not translated", []string{
		`spec.ignoreDifferences[0].jqPathExpressions[0]: ".spec.template.spec.volumes[] | select(.name == \"token\")": it selects no field of the imported objects now`,
		`spec.ignoreDifferences[0].jqPathExpressions[1]: ".spec | keys": it selects no field of the imported objects now`,
	}, from.translation.Untranslated())
	clitest.Golden(t, "translated-schema.yaml", says)
}

// Only marked objects are imported. An error says what the mark is.
func TestManaged(t *testing.T) {
	source, err := ignored.Read(clitest.Parsed(t, ofArgoCD))
	check.Must(t, err)
	from := &origin{source, ignored.NewTranslation(source)}
	object := func(name, id string) found {
		return found{Unstructured: &unstructured.Unstructured{Object: clitest.Parsed(t, `{apiVersion: v1, kind: Service, metadata: {name: `+name+`, namespace: demo, annotations: {argocd.argoproj.io/tracking-id: "`+id+`"}}}`)}}
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

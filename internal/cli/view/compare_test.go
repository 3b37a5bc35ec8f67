package view

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// The output for one object, without private values.
func TestCompare(t *testing.T) {
	var out strings.Builder
	for _, c := range []struct {
		why, manifest, schema, learned, observed string
		annotations                              []string
		live, owner                              string
		uid                                      types.UID
	}{
		{
			why: "an object that is as it should be", manifest: clitest.Deployment, owner: "web", uid: "1",
			live: strings.Replace(clitest.Deployment, "replicas: 2", "replicas: 2\n  paused: true", 1),
		},
		{
			why: "a value that is another, in one line of its surroundings", manifest: clitest.Service, owner: "web", uid: "1",
			live: strings.Replace(clitest.Service, "NodePort", "ClusterIP", 1),
		},
		{
			why: "of private values, that they are others, and not what they are", manifest: clitest.Deployment, owner: "web", uid: "1",
			live: strings.NewReplacer("hunter2", "hunter3", "shop", "food", "nginx:1", "nginx:2").Replace(clitest.Deployment),
		},
		{
			why: "how many elements there are of which nothing is observed, if that is too many", manifest: clitest.Service, schema: clitest.ServiceSchema, owner: "web", uid: "1",
			learned: `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80, nodePort: 30080}]}}`,
			live:    `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}, {port: 81}, {port: 82, token: x}]}}`,
		},
		{
			why: "a value that is to be pinned", manifest: clitest.Service, schema: clitest.ServiceSchema, owner: "web", uid: "1",
			live: `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}}`,
		},
		{
			why: "what left a spec that was not carried out yet", manifest: clitest.Service, owner: "web", uid: "1",
			observed: `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, sessionAffinity: ClientIP}}`,
			live:     clitest.Service[:len(clitest.Service)-2] + ", sessionAffinity: ClientIP}",
		},
		{
			why: "all of what is not there", manifest: strings.Replace(clitest.Service, "NodePort", "ClusterIP", 1),
		},
		{
			why: "a conflict with what belongs to no Application", manifest: clitest.Service, live: clitest.Service,
		},
		{
			why: "a conflict with another Application", manifest: clitest.Service, live: clitest.Service, owner: "other", uid: "7",
			annotations: []string{application.AdoptAnnotation, "true"},
		},
		{
			why: "what was restored from a backup", manifest: clitest.Service, live: clitest.Service, owner: "web", uid: "0",
		},
	} {
		t.Run(c.why, func(t *testing.T) {
			app := clitest.AdmittedOf(t, c.manifest, c.schema, c.annotations...)
			if c.learned != "" {
				app.Learned = []map[string]any{clitest.Parsed(t, c.learned)}
			}
			if c.observed != "" {
				app.LastObserved = application.Publishing([]map[string]any{clitest.Parsed(t, c.observed)})
			}
			expected := clitest.ExpectedOf(t, app)
			var live map[string]any
			if c.live != "" {
				live = clitest.Parsed(t, c.live)
			}
			if c.owner != "" {
				live = clitest.MarkedAs(c.owner, c.uid, live)
			}
			got, err := Compare(app, expected[0], live, false)
			check.Must(t, err)
			check.Equal(t, "differs", got.String() != "", got.Differs())
			fmt.Fprintf(&out, "== %s\n%s", c.why, got)
		})
	}
	clitest.Golden(t, "compare.txt", out.String())
}

// Without its label, an object is invisible to its agent, and this is reported.
func TestMissingLabel(t *testing.T) {
	app := clitest.AdmittedOf(t, clitest.Service, "")
	expected := clitest.ExpectedOf(t, app)
	live := clitest.MarkedAs("web", "1", clitest.Parsed(t, clitest.Service))
	delete(live["metadata"].(map[string]any)["labels"].(map[string]any), application.OwnedByLabel)
	got, err := Compare(app, expected[0], live, false)
	if want := "the label by which its agent finds it is missing"; err != nil || !strings.Contains(got.String(), want) {
		t.Errorf("%q, %v: want %q", got.String(), err, want)
	}
}

// If an agent has mapped the namespace, its inventory shows it, and the other namespace is no
// drift.
func TestMappedNamespace(t *testing.T) {
	app := clitest.AdmittedOf(t, strings.Replace(clitest.Service, "name: web", "name: web, namespace: demo", 1), "")
	app.Inventory = []manifest.ID{{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}}
	expected := clitest.ExpectedOf(t, app)
	id := lens.Placed(app, expected[0].ID)
	if id.Namespace != "shop" || len(apps.Leaving(app, expected)) > 0 {
		t.Errorf("it is looked for in %s, and %v leaves", id.Namespace, apps.Leaving(app, expected))
	}
	live := clitest.Parsed(t, strings.Replace(clitest.Service, "name: web", "name: web, namespace: shop", 1))
	live = application.Marks(app.NamespacedName, app.UID, id).On(live)
	got, err := Compare(app, expected[0], live, false)
	if err != nil || got.Differs() {
		t.Errorf("%v: %s", err, got)
	}
	for _, field := range lens.Compare(app, expected[0], live, false).Fields {
		if field.Drift {
			t.Errorf("%v is drift", field)
		}
	}
	app.Inventory = append(app.Inventory, manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "web"})
	check.Equal(t, "its own namespace", "demo", lens.Placed(app, expected[0].ID).Namespace)
}

// pair is an observer schema with a desired and a live object.
type pair struct {
	why           string
	schema        schema.Schema
	desired, live map[string]any
}

// pairs returns the pairs of the schema package's tests.
func pairs(t *testing.T) []pair {
	t.Helper()
	var found []pair
	for _, file := range []string{"compare", "keyed", "overlay", "patch", "late_initialize", "released"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "pkg", "schema", "testdata", file+".yaml"))
		check.Must(t, err)
		cases, err := manifest.Decode(text)
		check.Must(t, err)
		for _, value := range cases {
			c := value.(map[string]any)
			document, ok := c["schema"].(map[string]any)
			if !ok {
				continue
			}
			p := pair{why: file + ": " + c["why"].(string), desired: identified(c["desired"]), live: identified(c["live"])}
			set, findings := schema.Mangle([]any{identified(nil)}, []any{identified(document)})
			if len(findings.Errors()) > 0 {
				t.Fatal(p.why, findings)
			}
			p.schema = set[0]
			found = append(found, p)
		}
	}
	if len(found) < 60 {
		t.Fatalf("there are only %d pairs", len(found))
	}
	return found
}

// identified returns an object with the identity of the Song top50.
func identified(value any) map[string]any {
	object, _ := runtime.DeepCopyJSONValue(value).(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
	}
	metadata["name"] = "top50"
	object["apiVersion"], object["kind"], object["metadata"] = "v1", "Song", metadata
	return object
}

// The output is empty exactly if the agent finds no difference. This holds for both objects of each pair against
// the desired one, for learned values, and where values are hidden.
func TestDiffIsEmptyIfNothingDiffers(t *testing.T) {
	different, equal := 0, 0
	for _, p := range pairs(t) {
		for _, live := range []map[string]any{p.live, p.desired, p.schema.LateInitialize(p.desired, p.live), p.schema.Overlay(p.desired, p.live)} {
			for _, kind := range []string{"Song", "Secret"} {
				c := Comparison{Redactor: lens.Redactor{Kind: kind}, id: manifest.ID{APIVersion: "v1", Kind: kind, Name: "top50"}}
				check.Must(t, c.observed(p.schema, p.desired, live))
				found := p.schema.Compare(p.desired, live)
				if c.Differs() != (len(found) > 0) || c.Differs() != (c.String() != "") {
					t.Fatalf("%s: Compare finds %v, and there is to tell: %q\ndesired %v\nlive %v", p.why, found, c.String(), p.desired, live)
				}
				if len(found) > 0 {
					different++
				} else {
					equal++
				}
			}
		}
	}
	if min(different, equal) < 50 {
		t.Errorf("%d differ and %d do not: that shows nothing", different, equal)
	}
}

// No value of a private field is printed, at any place and in any shape.
func TestNothingPrivateIsTold(t *testing.T) {
	const secret = "hunter2"
	for _, c := range []struct{ why, kind, desired, live string }{
		{"a Secret", "Secret", "type: hunter2", "type: hunter2x"},
		{"the data of a ConfigMap", "ConfigMap", "data: {a: hunter2}", "data: {a: other}"},
		{"the environment", "Deployment", "spec: {env: [{name: A, value: hunter2}]}", "spec: {env: [{name: A, value: hunter2x}]}"},
		{"arguments, which are plain values of a list", "Deployment", "spec: {args: [--a=hunter2]}", "spec: {args: [--b=hunter2, x]}"},
		{"a value of another shape", "Deployment", "spec: {x: {password: hunter2}}", "spec: {x: 1}"},
		{"a value of another shape on the cluster", "Deployment", "spec: {x: [1]}", "spec: {x: {token: hunter2}}"},
		{"a value that comes anew", "Deployment", "spec: {x: {token: hunter2}}", "spec: {}"},
	} {
		desired, live := identified(clitest.Parsed(t, c.desired)), identified(clitest.Parsed(t, c.live))
		for _, object := range []map[string]any{desired, live} {
			object["kind"] = c.kind
		}
		whole := schemaOf(t, desired).Observe("whole")
		desired["whole"] = map[string]any{"password": secret}
		s := schemaOf(t, desired)
		for _, observed := range []schema.Schema{s, whole} {
			for _, private := range []bool{false, true} {
				comparison := Comparison{Redactor: lens.Redactor{Kind: c.kind, Private: private}, id: observed.ID()}
				check.Must(t, comparison.observed(observed, desired, live))
				text := comparison.String()
				shows := private && c.kind != "Secret" // a Secret's values are never shown
				if text == "" || strings.Contains(text, secret) != shows {
					t.Errorf("%s, private %v: %s", c.why, private, text)
				}
			}
		}
	}
}

func schemaOf(t *testing.T, resource map[string]any) schema.Schema {
	t.Helper()
	s, err := schema.Default(resource)
	check.Must(t, err)
	return s
}

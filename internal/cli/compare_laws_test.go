package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

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
		text, err := os.ReadFile(filepath.Join("..", "..", "pkg", "schema", "testdata", file+".yaml"))
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
				c := comparison{Sight: lens.Sight{Kind: kind}, id: manifest.ID{APIVersion: "v1", Kind: kind, Name: "top50"}}
				check.Must(t, c.observed(p.schema, p.desired, live))
				found := p.schema.Compare(p.desired, live)
				if c.differs() != (len(found) > 0) || c.differs() != (c.String() != "") {
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
		desired, live := identified(parsed(t, c.desired)), identified(parsed(t, c.live))
		for _, object := range []map[string]any{desired, live} {
			object["kind"] = c.kind
		}
		whole := schemaOf(t, desired).Observe("whole")
		desired["whole"] = map[string]any{"password": secret}
		s := schemaOf(t, desired)
		for _, observed := range []schema.Schema{s, whole} {
			for _, private := range []bool{false, true} {
				comparison := comparison{Sight: lens.Sight{Kind: c.kind, Private: private}, id: observed.ID()}
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

// parsed returns the object of a YAML text.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	check.Must(t, err)
	values, err := manifest.Decode(encoded)
	if err != nil || len(values) != 1 {
		t.Fatalf("%d values: %v", len(values), err)
	}
	return values[0].(map[string]any)
}

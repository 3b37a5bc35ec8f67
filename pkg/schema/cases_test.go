package schema_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

type object = map[string]any

// testCase is a document of a file in testdata: why it matters, the input of the operation,
// and its output. Resources without an identity are the Song top50.
type testCase object

// forEach runs a test for each document of a file, and checks that the operation left its
// arguments unchanged.
func forEach(t *testing.T, file string, run func(t *testing.T, c testCase)) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	check.Must(t, err)
	documents, err := manifest.Decode(text)
	check.Must(t, err)
	for _, document := range documents {
		c := testCase(document.(object))
		t.Run(c["why"].(string), func(t *testing.T) {
			c.complete()
			before := runtime.DeepCopyJSON(c)
			run(t, c)
			check.Equal(t, "the arguments afterwards", before, object(c))
		})
	}
}

func (c testCase) complete() {
	for _, name := range []string{"schema", "schemas", "manifest", "manifests", "former", "object", "desired", "live", "written", "observed", "learned", "want", "forgotten"} {
		switch value := c[name].(type) {
		case object:
			complete(value)
		case []any:
			for _, item := range value {
				complete(item.(object))
			}
		}
	}
}

func (c testCase) object(name string) object {
	fields, _ := c[name].(object)
	return fields
}

func (c testCase) objects(name string) []object {
	items, _ := c[name].([]any)
	objects := make([]object, 0, len(items))
	for _, item := range items {
		objects = append(objects, item.(object))
	}
	return objects
}

func (c testCase) texts(name string) []string {
	items, _ := c[name].([]any)
	var texts []string
	for _, item := range items {
		texts = append(texts, item.(string))
	}
	return texts
}

func (c testCase) schema(t *testing.T) schema.Schema {
	t.Helper()
	return parse(t, c.object("schema"))
}

func (c testCase) set(t *testing.T) schema.Set {
	t.Helper()
	var set schema.Set
	for _, document := range c.objects("schemas") {
		set = append(set, parse(t, document))
	}
	return set
}

func (c testCase) check(t *testing.T, want string, got any) {
	t.Helper()
	check.Equal(t, want, c[want], plain(t, got))
}

// plain returns a value as a client decodes it from JSON.
func plain(t *testing.T, value any) any {
	t.Helper()
	var decoded any
	check.Must(t, json.Unmarshal([]byte(text(t, value)), &decoded))
	return decoded
}

func TestDefault(t *testing.T) {
	forEach(t, "default.yaml", func(t *testing.T, c testCase) {
		c.check(t, "want", defaultOf(t, c.object("manifest")).Document())
	})
}

func TestDefaultNeedsAnIdentity(t *testing.T) {
	_, err := schema.Default(object{"kind": "Song"})
	check.Equal(t, "error", "the resource lacks apiVersion, metadata.name", check.Message(err))
}

func TestCompare(t *testing.T) {
	forEach(t, "compare.yaml", func(t *testing.T, c testCase) {
		found := c.schema(t).Compare(c.object("desired"), c.object("live"))
		c.check(t, "differences", describe(found))
		check.Equal(t, "differences that are either drift or unknown", len(found), len(found.Drift())+len(found.Unknown()))
	})
}

func TestNumbersAreComparedByValue(t *testing.T) {
	tests := []struct {
		desired, live any
		equal         bool
	}{
		{int64(1), 1.0, true},
		{1.0, int64(1), true},
		{0.5, 0.5, true},
		{0.5, int64(0), false},
		{int64(1<<53 + 1), float64(1 << 53), false}, // no float is as large
		{int64(math.MaxInt64), float64(1 << 63), false},
		{int64(math.MinInt64), float64(-1 << 63), true},
		{int64(1), "1", false},
		{int64(1), true, false},
	}
	s := parse(t, complete(object{"spec": object{"a": nil}}))
	for _, test := range tests {
		desired := object{"spec": object{"a": test.desired}}
		live := object{"spec": object{"a": test.live}}
		what := fmt.Sprintf("%T %v and %T %v are equal", test.desired, test.desired, test.live, test.live)
		check.Equal(t, what, test.equal, len(s.Compare(desired, live)) == 0)
	}
}

// A manifest may name a namespace for a cluster-scoped object by mistake.
func TestDefaultOfAClusterScopedObject(t *testing.T) {
	desired := complete(object{"metadata": object{"namespace": "demo"}})
	s := defaultOf(t, desired)
	check.Empty(t, "differences", s.Compare(desired, complete(object{})))
}

// describe returns differences in the notation of the cases.
func describe(found schema.Differences) []object {
	described := make([]object, 0, len(found))
	for _, difference := range found {
		fields := object{string(difference.Kind): difference.Path.String()}
		if difference.Want != nil {
			fields["want"] = difference.Want
		}
		if difference.Have != nil {
			fields["have"] = difference.Have
		}
		if difference.Kind == schema.TooLong {
			fields["cut"] = difference.Cut
		}
		described = append(described, fields)
	}
	return described
}

func TestPatch(t *testing.T) {
	forEach(t, "patch.yaml", func(t *testing.T, c testCase) {
		got := c.schema(t).Patch(c.object("desired"), c.object("live"))
		c.check(t, "operations", append(schema.Patch{}, got...))
	})
}

func TestPatchGuard(t *testing.T) {
	patch := append(make(schema.Patch, 0, 2), schema.Operation{Op: "remove", Path: "/spec/a/1"})
	got := plain(t, patch.Guard("7"))
	want := []any{
		object{"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
		object{"op": "remove", "path": "/spec/a/1"},
	}
	same(t, want, got)
	check.Equal(t, "the patch itself, without the guard", "remove", patch[0].Op)
}

func TestResults(t *testing.T) {
	for file, of := range map[string]func(schema.Schema, testCase) any{
		"project.yaml":         func(s schema.Schema, c testCase) any { return s.Project(c.object("desired"), c.object("object")) },
		"observed_part.yaml":   func(s schema.Schema, c testCase) any { return s.ObservedPart(c.object("desired")) },
		"overlay.yaml":         func(s schema.Schema, c testCase) any { return s.Overlay(c.object("desired"), c.object("live")) },
		"late_initialize.yaml": func(s schema.Schema, c testCase) any { return s.LateInitialize(c.object("desired"), c.object("live")) },
		"retain.yaml":          func(s schema.Schema, c testCase) any { return s.Retain(c.object("manifest"), c.object("former")) },
		"learned.yaml":         func(s schema.Schema, c testCase) any { return s.Learned(c.object("desired"), c.object("manifest")) },
	} {
		forEach(t, file, func(t *testing.T, c testCase) { c.check(t, "want", of(c.schema(t), c)) })
	}
}

func TestObserve(t *testing.T) {
	forEach(t, "observe.yaml", func(t *testing.T, c testCase) {
		s := c.schema(t)
		c.check(t, "want", s.Observe(c.texts("path")...).Document())
		c.check(t, "schema", s.Document()) // the receiver is unchanged
	})
}

func TestSetOf(t *testing.T) {
	forEach(t, "set_of.yaml", func(t *testing.T, c testCase) {
		schemas, err := c.set(t).Of(c.objects("manifests"))
		want, _ := c["error"].(string)
		check.Equal(t, "error", want, check.Message(err))
		if err == nil {
			c.check(t, "want", schema.Set(schemas).Documents())
		}
	})
}

func TestSetRetain(t *testing.T) {
	forEach(t, "set_retain.yaml", func(t *testing.T, c testCase) {
		got, err := c.set(t).Retain(c.objects("manifests"), c.objects("former"))
		check.Must(t, err)
		c.check(t, "want", got)
		for _, resource := range got {
			scribble(resource) // forEach checks whether that reached an argument
		}
	})
}

func TestSetDelta(t *testing.T) {
	forEach(t, "set_delta.yaml", func(t *testing.T, c testCase) {
		delta, err := c.set(t).Delta(c.objects("desired"), c.objects("observed"))
		message, _ := c["error"].(string)
		check.Equal(t, "error", message, check.Message(err))
		if err != nil {
			return
		}
		want := c.object("delta")
		for name, got := range map[string][]int{"new": delta.New, "modified": delta.Modified, "deleted": delta.Deleted} {
			check.Equal(t, name, want[name], plain(t, got))
		}
	})
}

func TestResourcesWithoutIdentity(t *testing.T) {
	set := schema.Set{parse(t, complete(object{}))}
	ok, broken := []object{complete(object{})}, []object{complete(object{}), {"kind": "Song"}}
	const want = "resource 1: the resource lacks apiVersion, metadata.name"
	calls := map[string]func() error{
		"Of":                   func() error { _, err := set.Of(broken); return err },
		"Retain, the manifest": func() error { _, err := set.Retain(broken, ok); return err },
		"Retain, the former":   func() error { _, err := set.Retain(ok, broken); return err },
		"Delta, desired":       func() error { _, err := set.Delta(broken, ok); return err },
		"Delta, observed":      func() error { _, err := set.Delta(ok, broken); return err },
	}
	for name, call := range calls {
		check.Equal(t, name, want, check.Message(call()))
	}
}

func decode(t *testing.T, yaml string) object {
	t.Helper()
	documents, err := manifest.Decode([]byte(yaml))
	check.Must(t, err)
	return documents[0].(object)
}

func defaultOf(t *testing.T, resource object) schema.Schema {
	t.Helper()
	s, err := schema.Default(resource)
	check.Must(t, err)
	return s
}

// same is [check.Equal] for results that need no name.
func same(t *testing.T, want, got any) {
	t.Helper()
	check.Equal(t, "result", want, got)
}

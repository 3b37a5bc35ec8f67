package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// Any input is either refused with a place and a way out, or all operations work with what it
// decodes to.
func FuzzBytes(f *testing.F) {
	const resource = "{apiVersion: v1, kind: Song, metadata: {name: a, namespace: b}, spec: {list: [{k: x, v: 1}], cpu: 0.5}}"
	f.Add([]byte(resource), []byte("{apiVersion: v1, kind: Song, metadata: {name: a}, spec: {list: [{v: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 0, observer_schema_list_key: k}]}}"), []byte(resource))
	f.Add([]byte(resource+"\n---\n"+resource), []byte(""), []byte("{spec: [1]}"))
	f.Add([]byte("[1, null, {}]"), []byte("- 1\n- {kind: [], metadata: 1}"), []byte("null"))
	f.Add([]byte(resource), []byte("{apiVersion: v1, kind: Song, metadata: {name: a, labels: []}, spec: [[[]]]}"), []byte(resource))
	f.Fuzz(func(t *testing.T, manifests, schemas, live []byte) {
		resources, custom, objects := decoded(manifests), decoded(schemas), objectsIn(decoded(live))
		set, findings := schema.Mangle(resources, custom)
		checkFindings(t, findings)
		if len(findings.Errors()) > 0 {
			return
		}
		desired := objectsIn(resources)
		own, err := set.Of(desired)
		check.Must(t, err)
		for i, s := range own {
			for _, object := range append(objects, desired[i]) {
				useAll(s, desired[i], object)
				useAll(s.Align(keyed("k")).ByValue().Accept(s.Forms(desired[i], object)), desired[i], object)
			}
		}
		again, findings := schema.Mangle(resources, documentsOf(set))
		if len(findings.Errors()) > 0 {
			t.Fatalf("a printed schema is refused: %v", findings)
		}
		same(t, set.Documents(), again.Documents())
	})
}

func checkFindings(t *testing.T, findings schema.Findings) {
	t.Helper()
	for _, finding := range findings {
		if finding.Code == "" || !strings.HasPrefix(finding.Path, "spec") || finding.Message == "" || len(finding.Error()) > 4096 {
			t.Errorf("finding %q", finding)
		}
	}
}

// useAll calls every operation of a schema.
func useAll(s schema.Schema, desired, live object) {
	known := s.LateInitialize(desired, live)
	s.Retain(desired, live)
	s.Learned(known, desired)
	s.ObservedPart(live)
	s.Compare(known, s.Overlay(desired, live))
	s.CompareProjection(desired, s.Project(desired, live))
	s.Patch(desired, live).Guard("1")
	s.WithoutServerOwned()
	s.Keep(live, s.Forms(desired, live))
	_, elements := s.Released(desired, s.Project(known, live), s.Learned(known, desired), live)
	s.Compare(desired, live, elements...).Patch()
	s.Released(nil, live, desired, known)
	s.Forget(known, desired, live, "spec", "list", "v")
}

func decoded(text []byte) []any {
	documents, err := manifest.Decode(text)
	if err != nil {
		return nil
	}
	return documents
}

func objectsIn(values []any) []object {
	objects := []object{}
	for _, value := range values {
		if fields, ok := value.(object); ok {
			objects = append(objects, fields)
		}
	}
	return objects
}

func documentsOf(set schema.Set) []any {
	var documents []any
	for _, document := range set.Documents() {
		documents = append(documents, any(document))
	}
	return documents
}

// A text of some kilobytes has room for thousands of mistakes, each at a place whose name is
// as long as the text. The size of the findings stays bounded.
func TestFindingsAreBounded(t *testing.T) {
	const mistakes = 20_000
	long := strings.Repeat("x", 10_000)
	list := make([]any, mistakes)
	for i := range list {
		list[i] = "mistake"
	}
	_, findings := schema.Mangle([]any{complete(object{})}, []any{complete(object{long: object{long: list}})})
	check.Equal(t, "number of findings", 1001, len(findings))
	checkFindings(t, findings)
	check.Equal(t, "last finding", fmt.Sprintf("%d more mistakes are not listed", mistakes-999), findings[len(findings)-1].Message)
}

// A value that is too deep to decode can still be built in memory.
func TestTooDeep(t *testing.T) {
	var deep any
	for range 10_000 {
		deep = object{"a": deep}
	}
	_, findings := schema.Mangle([]any{complete(object{})}, []any{complete(object{"spec": deep})})
	if len(findings) != 1 || findings[0].Code != "too-deep" {
		t.Errorf("findings are %v", findings)
	}
	_, findings = schema.Mangle([]any{complete(object{"spec": deep})}, nil)
	if len(findings) != 1 || findings[0].Code != "too-deep" || findings[0].Path != "spec.manifest[0]" {
		t.Errorf("of a manifest, findings are %v", findings)
	}
	legal := runtime.DeepCopyJSON(complete(object{}))
	deep = nil
	for range manifest.MaxDepth - 1 {
		deep = object{"a": deep}
	}
	legal["spec"] = deep
	_, findings = schema.Mangle([]any{complete(object{})}, []any{legal})
	check.Empty(t, "findings of what the decoder lets through", findings)
}

// A patch is never larger than a server accepts, and its parts restore everything.
func TestPatchesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 50_000)
	wanted, have, surplus := object{}, object{}, make([]any, 12_000)
	for i := range 500 {
		wanted[fmt.Sprint(i)], have[fmt.Sprint(i)] = "a", "b"
	}
	for i := range surplus {
		surplus[i] = "surplus"
	}
	desired := complete(object{"spec": object{"list": []any{}, "last": "a"}, long: wanted})
	live := complete(object{"spec": object{"list": surplus, "last": "b"}, long: have})
	s := parse(t, complete(object{"spec": object{"last": nil, "list": []any{object{minLength: int64(0), maxLength: int64(1)}}}, long: defaultOf(t, complete(object{"spec": wanted})).Document()["spec"]}))
	requests := 0
	for patch := s.Patch(desired, live); len(patch) > 0; patch = s.Patch(desired, live) {
		length := 0
		for _, operation := range patch {
			length += len(operation.Path)
		}
		if requests++; len(patch) > 9_999 || length > 1<<20 || requests > 100 {
			t.Fatalf("request %d has %d operations with %d bytes of paths", requests, len(patch), length)
		}
		live = patched(t, live, patch)
	}
	check.Empty(t, "differences that are left", s.Compare(desired, live))
}

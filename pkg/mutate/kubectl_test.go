package mutate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// same compares two JSON values. An integer equals a float of the same value: 1.0 in a text
// becomes 1 when it is written as JSON. (go-cmp would double its time for each list within a
// list.)
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, same)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case int64:
		if b, ok := b.(float64); ok {
			return float64(a) == b && b < 1<<63 && int64(b) == a
		}
	case float64:
		if b, ok := b.(int64); ok {
			return same(b, a)
		}
	}
	return a == b
}

// checkAsKubectl checks that all readers decode a text to the same value: this program,
// kubectl, and readers of its JSON form.
func checkAsKubectl(t *testing.T, text []byte) {
	t.Helper()
	decoded, err := manifest.Decode(text)
	if err != nil {
		return // kubectl might take hours, so it is not called
	}
	for i, resource := range decoded {
		checkSurvives(t, i, resource)
	}
	theirs, err := asKubectl(text)
	if err == nil && !slices.EqualFunc(theirs, decoded, same) && !hasOddBreaks(text) {
		t.Errorf("%q is read as %v, and by kubectl as %v", text, decoded, theirs)
	}
}

// checkSurvives checks that a resource stays the same when it is stored, and when it is sent
// to an API server.
func checkSurvives(t *testing.T, i int, resource any) {
	t.Helper()
	text, err := json.Marshal(resource)
	if err != nil {
		t.Fatalf("resource %d is no JSON: %v", i, err)
	}
	var stored any
	if err := utiljson.Unmarshal(text, &stored); err != nil {
		t.Fatalf("resource %d cannot be read again: %v", i, err)
	}
	if !same(resource, stored) {
		t.Errorf("resource %d is read as %v, and stored as %v", i, resource, stored)
	}
	again, err := json.Marshal(stored)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("resource %d is written as %s, and the second time as %s: %v", i, text, again, err)
	}
	fields, isObject := resource.(map[string]any)
	if kind, _ := fields["kind"].(string); !isObject || kind == "" {
		return // the API server reads only objects with a kind
	}
	var sent unstructured.Unstructured
	if err := sent.UnmarshalJSON(text); err != nil {
		return // also refused by the API server
	}
	if !same(resource, sent.Object) {
		t.Errorf("resource %d is read as %v, and sent as %v", i, resource, sent.Object)
	}
}

// asKubectl decodes a text as kubectl apply -f does. It expands lists of resources, which
// kubectl would refuse.
func asKubectl(text []byte) ([]any, error) {
	var resources []any
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var document runtime.RawExtension
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return resources, nil
		}
		if err != nil {
			return nil, err
		}
		raw := bytes.TrimSpace(document.Raw)
		if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		var value any
		if err := utiljson.Unmarshal(raw, &value); err != nil {
			return nil, err
		}
		if items, isList := value.([]any); isList {
			resources = append(resources, items...)
		} else {
			resources = append(resources, value)
		}
	}
}

// hasOddBreaks reports line breaks that YAML has and JSON does not have. In JSON text after a
// line "---", kubectl takes them for line ends and replaces them by spaces. This program reads
// such a text as JSON.
func hasOddBreaks(text []byte) bool { return bytes.ContainsAny(text, "\u0085\u2028\u2029") }

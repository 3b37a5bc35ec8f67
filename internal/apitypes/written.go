package apitypes

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	strictjson "sigs.k8s.io/json"
)

// goTypes has the Go types of the API: those of client-go and the CustomResourceDefinition.
var goTypes = sync.OnceValue(func() *runtime.Scheme {
	known := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(known)) // fails for two types of one name only
	utilruntime.Must(apiextensionsv1.AddToScheme(known))
	return known
})

// Written returns an object of a built-in type as an API server would write it, except for defaults that
// it would add. Fields that client-go does not know stay unchanged, because a newer server may know them. The
// error says that the type is not known, or that the object does not have its shape.
func Written(object map[string]any) (map[string]any, error) {
	typed, err := newOf(object)
	if err != nil {
		return nil, err
	}
	if err := Read(object, typed); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", object["apiVersion"], object["kind"], err)
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("write %s %s: %w", object["apiVersion"], object["kind"], err)
	}
	keepUnknown(written, object)
	return written, nil
}

// writtenMetadata returns an object with its metadata as an API server would write it.
func writtenMetadata(object map[string]any) (map[string]any, error) {
	var typed metav1.PartialObjectMetadata
	if err := Read(map[string]any{"metadata": object["metadata"]}, &typed); err != nil {
		return nil, fmt.Errorf("read the metadata: %w", err)
	}
	metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed.ObjectMeta)
	if err != nil {
		return nil, fmt.Errorf("write the metadata: %w", err)
	}
	written := maps.Clone(object)
	written["metadata"] = metadata
	return written, nil
}

// newOf returns an empty value of the object's Go type.
func newOf(object map[string]any) (runtime.Object, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return goTypes().New(gvk.FromAPIVersionAndKind(apiVersion, kind))
}

// Read reads an object into a value of its Go type as a server does: field names are
// case-sensitive, and unknown fields are dropped. A number that would take too long to read is an
// error.
func Read(object map[string]any, into any) error {
	text, err := textOf(object)
	if err != nil {
		return err
	}
	return strictjson.UnmarshalCaseSensitivePreserveInts(text, into)
}

func textOf(object map[string]any) ([]byte, error) {
	if hasLongNumber(object) {
		return nil, errLongNumber
	}
	return json.Marshal(object)
}

// Mismatch is a value that does not fit its type. Field is its path without the indices of lists,
// or empty if it is not known.
type Mismatch struct{ Field, Problem string }

// Check returns the parts of an object that a server would not accept: fields that the type does not
// have, and the first unreadable value, with those of the other keys of its map. Of a kind that is not built in,
// it reads only labels and annotations. The texts repeat no values.
func Check(object map[string]any) (unknown []string, unreadable []Mismatch) {
	typed, err := newOf(object)
	isKnown := err == nil
	if !isKnown {
		metadata, _ := object["metadata"].(map[string]any)
		object = map[string]any{"metadata": map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}}
		typed = &metav1.PartialObjectMetadata{}
	}
	text, err := textOf(object)
	if err != nil {
		return nil, nil // a long number may be a text that only looks like one
	}
	strict, err := strictjson.UnmarshalStrict(text, typed, strictjson.DisallowUnknownFields)
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		return nil, mismatchesOf(mismatch, object)
	case err != nil:
		return nil, []Mismatch{{Problem: "a value does not have the form of its type, such as a quantity or a time"}}
	case !isKnown:
		return nil, nil
	}
	for _, problem := range strict {
		unknown = append(unknown, problem.Error())
	}
	return unknown, nil
}

// mismatchesOf returns the values that an error of the decoder is about. For a value in a map, the error names
// only the map.
func mismatchesOf(mismatch *json.UnmarshalTypeError, object map[string]any) []Mismatch {
	found, _, _ := strings.Cut(mismatch.Value, " ") // "number 1.5"
	var all []Mismatch
	add := func(field, found string) {
		all = append(all, Mismatch{field, fmt.Sprintf("its type has to be %s, and is %s", mismatch.Type, found)})
	}
	if mismatch.Type.Kind() == reflect.String {
		for _, texts := range mapsAt(object, strings.Split(mismatch.Field, ".")) {
			for _, key := range slices.Sorted(maps.Keys(texts)) {
				if is := jsonType(texts[key]); is != "string" && is != "null" {
					add(mismatch.Field+"["+key+"]", is)
				}
			}
		}
	}
	if len(all) == 0 {
		add(mismatch.Field, found)
	}
	return all
}

// mapsAt returns the objects at a path, through lists.
func mapsAt(value any, path []string) []map[string]any {
	switch value := value.(type) {
	case map[string]any:
		if len(path) == 0 {
			return []map[string]any{value}
		}
		return mapsAt(value[path[0]], path[1:])
	case []any:
		var all []map[string]any
		for _, item := range value {
			all = append(all, mapsAt(item, path)...)
		}
		return all
	}
	return nil
}

// jsonType returns the name of a value's type as package json writes it.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "bool"
	}
	return "number"
}

// keepUnknown adds what the round trip has dropped, except for zeros. Where both values exist, they have
// the same shape.
func keepUnknown(written, original any) {
	switch original := original.(type) {
	case map[string]any:
		fields, ok := written.(map[string]any)
		if !ok {
			return
		}
		for name, value := range original {
			if known, ok := fields[name]; ok {
				keepUnknown(known, value)
			} else if !isZero(value) {
				fields[name] = runtime.DeepCopyJSONValue(value)
			}
		}
	case []any:
		items, _ := written.([]any)
		for i := range min(len(items), len(original)) {
			keepUnknown(items[i], original[i])
		}
	}
}

// isZero reports whether a server may drop the whole value.
func isZero(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			if !isZero(field) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}

// errLongNumber is the error of a number that would take too long to read.
var errLongNumber = errors.New("a number is too long")

// hasLongNumber reports whether a text would be a very long number as a quantity: "1e999999" takes minutes.
func hasLongNumber(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			if hasLongNumber(field) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, hasLongNumber)
	case string:
		return isLongNumber(value)
	}
	return false
}

func isLongNumber(text string) bool {
	const digits, exponent = 32, 2 // more than any quantity has
	rest := strings.TrimLeft(text, "+-.0123456789")
	mantissa := len(text) - len(rest)
	switch {
	case mantissa == 0:
		return false
	case mantissa > digits:
		return len(rest) <= 2 || rest[0] == 'e' || rest[0] == 'E'
	case rest == "" || rest[0] != 'e' && rest[0] != 'E':
		return false
	}
	power := strings.TrimLeft(rest[1:], "+-0")
	return len(power) > exponent && strings.Trim(power, "0123456789") == ""
}

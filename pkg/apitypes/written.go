package apitypes

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	strictjson "sigs.k8s.io/json"
)

// Written gives an object of a built-in type as an API server would write it,
// but for the defaults that it would add, and for fields that client-go does not
// know: a newer server may, so they are written as they are. The object itself
// stays as it is. The error tells that the type is not known, or that the object
// has not its shape.
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

// newOf gives an empty value of the object's Go type.
func newOf(object map[string]any) (runtime.Object, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	return goTypes().New(gvk.FromAPIVersionAndKind(apiVersion, kind))
}

// Read reads an object into a value of its Go type as a server does: field names
// in their case, unknown ones dropped. A number that is too long to be read in a
// reasonable time is an error.
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

// Mismatch is a value that has not the form of its type. Field is its path,
// without the indices of lists, and empty where it is not known.
type Mismatch struct{ Field, Problem string }

// Check tells what a server would not take of an object of a built-in type:
// fields that the type does not have, which it would drop or refuse, and the
// first value that it could not read. Of other types nothing is told. The texts
// repeat no values.
func Check(object map[string]any) (unknown []string, unreadable *Mismatch) {
	typed, err := newOf(object)
	if err != nil {
		return nil, nil
	}
	text, err := textOf(object)
	if err != nil {
		return nil, nil // a long number: perhaps a text that only looks like one
	}
	strict, err := strictjson.UnmarshalStrict(text, typed, strictjson.DisallowUnknownFields)
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		found, _, _ := strings.Cut(mismatch.Value, " ") // "number 1.5"
		return nil, &Mismatch{mismatch.Field, fmt.Sprintf("its type has to be %s, and is %s", mismatch.Type, found)}
	case err != nil:
		return nil, &Mismatch{Problem: "a value has not the form of its type: a quantity, a time or the like"}
	}
	for _, problem := range strict {
		unknown = append(unknown, problem.Error())
	}
	return unknown, nil
}

// keepUnknown puts in what the round trip has dropped without being a zero. Both
// values have the same shape, where there are both.
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

// isZero tells if there is nothing in a value that a server could not drop.
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

// errLongNumber is the error of what would cost more to read than to refuse.
var errLongNumber = errors.New("a number is too long")

// hasLongNumber tells if there is a text that would be a very long number, were
// it read as a quantity: "1e999999" takes minutes.
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

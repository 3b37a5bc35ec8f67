package schema

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// equal compares two JSON values. Numbers of different Go types are compared by value. equal does
// not treat null specially, because the walkers already treat it as absent. It does not allocate.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalObjects(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && equalLists(a, b)
	case int64:
		switch b := b.(type) {
		case int64:
			return a == b
		case float64:
			return equalNumbers(a, b)
		}
		return false
	case float64:
		if b, ok := b.(int64); ok {
			return equalNumbers(b, a)
		}
	}
	return a == b
}

// equalNumbers is exact: an integer that a float cannot represent equals no float.
func equalNumbers(i int64, f float64) bool {
	return float64(i) == f && f < 1<<63 && int64(f) == i
}

func equalObjects(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		other, ok := b[key]
		if !ok || !equal(value, other) {
			return false
		}
	}
	return true
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// clone copies a value, so that a result shares nothing with an argument.
func clone(value any) any {
	return runtime.DeepCopyJSONValue(value)
}

func at(items []any, i int) any {
	if i < len(items) {
		return items[i]
	}
	return nil
}

func itemsOf(value any) []any {
	items, _ := value.([]any)
	return items
}

func fieldOf(value any, name string) any {
	fields, _ := value.(map[string]any)
	return fields[name]
}

func sortedNames(values map[string]any) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// spots returns the paths of the values in a manifest that a client may change: all but the identity
// and what only a server sets.
func spots(value any, path schema.Path) (found []schema.Path) {
	below := func(step schema.Step, value any) {
		inner := append(slices.Clip(path), step)
		if schema.IsServerOwned(inner) {
			return
		}
		found = append(found, inner)
		found = append(found, spots(value, inner)...)
	}
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if len(path) == 0 && (name == "apiVersion" || name == "kind") || len(path) == 1 && path[0].Field == "metadata" && (name == "name" || name == "namespace") {
				continue
			}
			below(schema.Step{Field: name, Index: -1}, field)
		}
	case []any:
		for i, item := range value {
			below(schema.Step{Index: i}, item)
		}
	}
	return found
}

// drifts are the ways in which a client changes a value. Each returns the new value and whether it
// could change it. nil removes the value.
func drifts() map[string]func(random *rand.Rand, value any) (any, bool) {
	list := func(change func(*rand.Rand, []any) []any) func(*rand.Rand, any) (any, bool) {
		return func(random *rand.Rand, value any) (any, bool) {
			items, ok := value.([]any)
			if !ok || len(items) == 0 {
				return nil, false
			}
			return change(random, slices.Clone(items)), true
		}
	}
	insert := func(at func(*rand.Rand, int) int) func(*rand.Rand, []any) []any {
		return func(random *rand.Rand, items []any) []any {
			other := another(random, runtime.DeepCopyJSONValue(items[random.IntN(len(items))]))
			return slices.Insert(items, at(random, len(items)), other)
		}
	}
	return map[string]func(*rand.Rand, any) (any, bool){
		"change":               func(random *rand.Rand, value any) (any, bool) { return another(random, value), true },
		"remove":               func(*rand.Rand, any) (any, bool) { return nil, true },
		"insert in front":      list(insert(func(*rand.Rand, int) int { return 0 })),
		"insert in the middle": list(insert(func(random *rand.Rand, length int) int { return random.IntN(length + 1) })),
		"insert at the end":    list(insert(func(_ *rand.Rand, length int) int { return length })),
		"remove an element": list(func(random *rand.Rand, items []any) []any {
			at := random.IntN(len(items))
			return slices.Delete(items, at, at+1)
		}),
		"swap": list(func(random *rand.Rand, items []any) []any {
			a, b := random.IntN(len(items)), random.IntN(len(items))
			items[a], items[b] = items[b], items[a]
			return items
		}),
		"reverse": list(func(_ *rand.Rand, items []any) []any { slices.Reverse(items); return items }),
		"duplicate": list(func(random *rand.Rand, items []any) []any {
			return append(items, runtime.DeepCopyJSONValue(items[random.IntN(len(items))]))
		}),
		"empty": func(_ *rand.Rand, value any) (any, bool) {
			switch value.(type) {
			case []any:
				return []any{}, true
			case map[string]any:
				return map[string]any{}, true
			}
			return nil, false
		},
	}
}

// another returns another value of the same type.
func another(random *rand.Rand, value any) any {
	switch value := value.(type) {
	case string:
		return value + fmt.Sprint(random.IntN(9))
	case bool:
		return !value
	case int64:
		return value + 1 + random.Int64N(3)
	case float64:
		return value + 1
	case []any:
		if len(value) > 0 {
			at := random.IntN(len(value))
			value[at] = another(random, value[at])
		}
		return value
	case map[string]any:
		names := make([]string, 0, len(value))
		for name := range value {
			names = append(names, name)
		}
		if slices.Sort(names); len(names) > 0 {
			name := names[random.IntN(len(names))]
			value[name] = another(random, value[name])
		}
		return value
	}
	return "something"
}

// set sets a value at a path, or removes it.
func set(root any, path schema.Path, value any) bool {
	last := len(path) - 1
	parent := schema.ValueAt(root, path[:last])
	switch parent := parent.(type) {
	case map[string]any:
		if value == nil {
			delete(parent, path[last].Field)
		} else {
			parent[path[last].Field] = value
		}
		return true
	case []any:
		if path[last].Index >= len(parent) {
			return false
		}
		if value == nil {
			return last > 0 && set(root, path[:last], slices.Delete(slices.Clone(parent), path[last].Index, path[last].Index+1))
		}
		parent[path[last].Index] = value
		return true
	}
	return false
}

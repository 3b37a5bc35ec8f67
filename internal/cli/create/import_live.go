package create

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// asLive returns what kubectl has applied to an object, with the live values. A part that others have
// taken apart is the whole live one: what is left of the applied one may mean something else, as a
// NetworkPolicy's rule without its peers.
func asLive(applied, live map[string]any, kind schema.Type) map[string]any {
	resource := map[string]any{}
	for name, value := range applied {
		have := live[name]
		fields, isObject := value.(map[string]any)
		haveFields, haveObject := have.(map[string]any)
		switch {
		case have == nil || name == "status":
		case name == "metadata":
			resource[name] = metadataAsLive(fields, haveFields)
		case isObject && haveObject:
			resource[name] = fieldsAsLive(fields, haveFields, fieldType(kind, name))
		default:
			resource[name] = valueAsLive(value, have, fieldType(kind, name))
		}
	}
	return resource
}

// metadataAsLive returns the metadata that an Application may set.
func metadataAsLive(applied, live map[string]any) map[string]any {
	metadata := map[string]any{"name": live["name"]}
	for _, field := range []string{"labels", "annotations"} {
		names, _ := applied[field].(map[string]any)
		values, _ := live[field].(map[string]any)
		values = maps.Clone(values)
		maps.DeleteFunc(values, func(name string, _ any) bool {
			_, set := names[name]
			return !set || manifest.IsReserved(name)
		})
		if len(values) > 0 {
			metadata[field] = values
		}
	}
	return metadata
}

func fieldsAsLive(applied, live map[string]any, kind schema.Type) map[string]any {
	fields := map[string]any{}
	for name, value := range applied {
		if have := live[name]; have != nil {
			fields[name] = valueAsLive(value, have, fieldType(kind, name))
		}
	}
	return fields
}

func valueAsLive(applied, live any, kind schema.Type) any {
	switch have := live.(type) {
	case map[string]any:
		if fields, ok := applied.(map[string]any); ok && !lacksField(have, fields) {
			return fieldsAsLive(fields, have, kind)
		}
	case []any:
		if items, ok := applied.([]any); ok {
			return itemsAsLive(items, have, kind)
		}
	}
	return runtime.DeepCopyJSONValue(live)
}

// lacksField reports whether an applied field is gone. The API server drops fields that are zero.
func lacksField(live, applied map[string]any) bool {
	for name, value := range applied {
		if live[name] == nil && !isZero(value) {
			return true
		}
	}
	return false
}

func isZero(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}

// itemsAsLive returns the applied elements in their live order, or the whole live list if one of them
// is not found.
func itemsAsLive(applied, live []any, kind schema.Type) []any {
	var element schema.Type
	var keys []schema.Key
	if kind != nil {
		element, keys = kind.Element(), kind.Keys()
	}
	whole := runtime.DeepCopyJSONValue(live).([]any) //nolint:forcetypeassert // a copy has the same type
	if len(keys) == 0 && len(applied) != len(live) {
		return whole
	}
	type item struct {
		at    int
		value any
	}
	items := make([]item, 0, len(applied))
	for at, value := range applied {
		if len(keys) > 0 {
			at = slices.IndexFunc(live, func(have any) bool { return haveSameKey(value, have, keys) })
		}
		if at < 0 {
			return whole
		}
		items = append(items, item{at, valueAsLive(value, live[at], element)})
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.at, b.at) })
	values := make([]any, 0, len(items))
	for _, item := range items {
		values = append(values, item.value)
	}
	return values
}

func haveSameKey(a, b any, keys []schema.Key) bool {
	first, _ := a.(map[string]any)
	second, _ := b.(map[string]any)
	for _, key := range keys {
		of := func(fields map[string]any) any {
			if value := fields[key.Name]; value != nil {
				return value
			}
			return key.Default
		}
		if of(first) == nil || !reflect.DeepEqual(of(first), of(second)) {
			return false
		}
	}
	return true
}

// fieldType is the type of a field, nil if the kind is unknown.
func fieldType(kind schema.Type, name string) schema.Type {
	if kind == nil {
		return nil
	}
	return kind.Field(name)
}

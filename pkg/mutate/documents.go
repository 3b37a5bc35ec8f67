package mutate

import (
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// below returns the object at the path, or nil if there is none.
func below(fields map[string]any, path ...string) map[string]any {
	for _, name := range path {
		fields, _ = fields[name].(map[string]any)
	}
	return fields
}

// listOf returns the items of a list, and no items for null.
func listOf(value any) ([]any, bool) {
	items, ok := value.([]any)
	return items, ok || value == nil
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil
}

// isCore reports whether a resource is of a kind of the core group, in any spelling. A spelling
// that no API server accepts must not bypass a check.
func isCore(resource map[string]any, kind string) bool {
	apiVersion, _ := resource["apiVersion"].(string)
	written, _ := resource["kind"].(string)
	group, _, grouped := strings.Cut(strings.TrimSpace(apiVersion), "/")
	return (!grouped || group == "" || group == "core") && strings.EqualFold(strings.TrimSpace(written), kind)
}

// schemaIDs returns the identities of the schemas.
func schemaIDs(schemas schema.Set) []manifest.ID {
	ids := make([]manifest.ID, len(schemas))
	for i, observed := range schemas {
		ids[i] = observed.ID()
	}
	return ids
}

// identities returns the identities of the resources, empty for a resource without one.
func identities(resources []map[string]any) []manifest.ID {
	ids := make([]manifest.ID, len(resources))
	for i, resource := range resources {
		if id, err := manifest.Identify(resource); err == nil {
			ids[i] = id
		}
	}
	return ids
}

func valuesOf(objects []map[string]any) []any {
	values := make([]any, 0, len(objects))
	for _, object := range objects {
		values = append(values, object)
	}
	return values
}

func objectsOf(values []any) []map[string]any {
	objects := make([]map[string]any, len(values))
	for i, value := range values {
		objects[i], _ = value.(map[string]any) // another type is a separate finding
	}
	return objects
}

package schema

import "github.com/krake-observer/krake-observer/pkg/manifest"

// Default returns the observer schema of a resource for which the user wrote none (Krake
// documentation, Application controller, step 1). It observes every field of the manifest, and requires the length of its lists. It observes
// metadata.namespace if the manifest sets it.
// The error is that of [manifest.Identify].
func Default(resource map[string]any) (Schema, error) {
	id, err := manifest.Identify(resource)
	if err != nil {
		return Schema{}, err
	}
	var root, metadata []field
	for name, value := range resource {
		switch name {
		case "apiVersion", "kind", "metadata":
		default:
			root = append(root, field{name, defaultNode(value)})
		}
	}
	fields, _ := resource["metadata"].(map[string]any)
	for name, value := range fields {
		switch {
		case name == "name":
		case name == "namespace" && value == nil:
		case name == "namespace":
			metadata = append(metadata, field{name, leaf{namespace: true}})
		default:
			metadata = append(metadata, field{name, defaultNode(value)})
		}
	}
	return identity(id, root, metadata), nil
}

func defaultNode(value any) node {
	switch value := value.(type) {
	case map[string]any:
		fields := make([]field, 0, len(value))
		for name, v := range value {
			fields = append(fields, field{name, defaultNode(v)})
		}
		made := newObject(fields)
		made.isDefault = true
		return made
	case []any:
		items := make([]node, 0, len(value))
		for _, item := range value {
			items = append(items, defaultNode(item))
		}
		return list{items: items, min: len(items), max: len(items), isDefault: true}
	}
	return leaf{}
}

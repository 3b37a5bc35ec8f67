// Package manifest has the rules for Kubernetes resources that need no cluster: how they are read
// from text, and which descriptions are of the same resource.
//
// A resource is a map[string]any of JSON values: objects, lists, strings, booleans, int64, float64 and
// nil. [Decode] returns such maps, and nothing in this package changes one that it gets.
//
//	resources, err := manifest.Decode([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"))
//	resource, ok := resources[0].(map[string]any)
//	id, err := manifest.Identify(resource) // v1 ConfigMap a
//
// It refuses YAML anchors, aliases and merge keys, whose expansion costs more than the text shows,
// duplicate keys, and nesting too deep for recursion.
//
//	manifest.Decode([]byte("a: &big [1, 2]\nb: *big\n")) // line 1: anchors and aliases are not supported
//
// The package knows no Application and no observer schema.
package manifest

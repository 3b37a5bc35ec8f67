// Package manifest has what is true of Kubernetes resources without a cluster:
// how they are read from text, and which of two descriptions mean the same
// resource.
//
// A resource is a map[string]any as JSON has it: objects, lists, strings,
// booleans, int64, float64 and nil. [Decode] makes such maps, and nothing in
// this package changes one that it was given.
//
//	resources, err := manifest.Decode([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"))
//	resource, ok := resources[0].(map[string]any)
//	id, err := manifest.Identify(resource) // v1 ConfigMap a
//
// Refused: YAML anchors, aliases and merge keys, whose expansion costs more
// than the text shows; duplicate keys; nesting that no walker could bear.
//
//	manifest.Decode([]byte("a: &big [1, 2]\nb: *big\n")) // line 1: anchors and aliases are not supported
//
// The package knows no Application and no observer schema.
package manifest

package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ID is the identity of a resource. Namespace is empty if the resource has none.
type ID struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Ref is a resource as an API server serves it. Namespace is empty only for cluster-scoped kinds.
type Ref struct {
	ID

	Resource schema.GroupVersionResource
}

// Identify reads the identity of a resource. The error names every field that is missing or is not a string.
func Identify(resource map[string]any) (ID, error) {
	metadata, _ := resource["metadata"].(map[string]any)
	var missing []string
	required := func(fields map[string]any, key, path string) string {
		value, _ := fields[key].(string)
		if value == "" {
			missing = append(missing, path)
		}
		return value
	}
	id := ID{
		APIVersion: required(resource, "apiVersion", "apiVersion"),
		Kind:       required(resource, "kind", "kind"),
		Name:       required(metadata, "name", "metadata.name"),
	}
	id.Namespace, _ = metadata["namespace"].(string)
	if len(missing) > 0 {
		return ID{}, fmt.Errorf("the resource lacks %s", strings.Join(missing, ", "))
	}
	return id, nil
}

// String returns "apps/v1 Deployment demo/web".
func (id ID) String() string {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return id.APIVersion + " " + id.Kind + " " + name
}

// GroupVersionKind parses APIVersion. The group is empty if it does not parse: no API server has such a kind.
func (id ID) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(id.APIVersion, id.Kind)
}

// IsDefinition reports whether the resource defines a kind.
func (id ID) IsDefinition() bool {
	return id.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// Pair returns for each identity of left the index of its partner in right, or -1. Each has at most
// one partner. Equal namespaces are paired first. Of the others, one without a namespace matches any
// namespace, in order.
func Pair(left, right []ID) []int {
	exact, loose := queues{}, queues{}
	for i, id := range right {
		exact[id] = append(exact[id], i)
		loose[id.anywhere()] = append(loose[id.anywhere()], i)
	}
	partners := make([]int, len(left))
	taken := make([]bool, len(right))
	for i, id := range left {
		partners[i] = exact.take(id, taken)
	}
	for i, id := range left {
		switch {
		case partners[i] >= 0:
		case id.Namespace == "": // any namespace will do
			partners[i] = loose.take(id, taken)
		default:
			partners[i] = exact.take(id.anywhere(), taken)
		}
	}
	return partners
}

// PairNamesakes is [Pair] for observer schemas, which have no namespace: the k-th schema of a name
// belongs to the k-th resource of that name, in any namespace.
func PairNamesakes(left, right []ID) []int { return Pair(anywhere(left), anywhere(right)) }

func anywhere(ids []ID) []ID {
	named := make([]ID, 0, len(ids))
	for _, id := range ids {
		named = append(named, id.anywhere())
	}
	return named
}

// anywhere returns the identity without its namespace.
func (id ID) anywhere() ID {
	id.Namespace = ""
	return id
}

// queues are the indices of the resources that share an identity, ascending.
type queues map[ID][]int

// take returns the first index that is not taken yet and marks it as taken, or returns -1.
func (q queues) take(id ID, taken []bool) int {
	for left := q[id]; len(left) > 0; left = left[1:] {
		q[id] = left[1:]
		if !taken[left[0]] {
			taken[left[0]] = true
			return left[0]
		}
	}
	return -1
}

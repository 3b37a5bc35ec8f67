package habitat

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/test/kit"
)

// leaf is a scalar value of an expected object.
type leaf struct {
	path  []any // fields, and indices of lists
	value any
}

// String returns the path as the engine writes it: spec.template.spec.containers[0].image,
// and metadata.labels["a.b/c"] for a field whose name is no word.
func (l leaf) String() string { return pathOf(l.path) }

func pathOf(path []any) string {
	var text strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&text, "[%d]", step)
		case string:
			switch {
			case strings.ContainsAny(step, "./"):
				fmt.Fprintf(&text, "[%q]", step)
			case text.Len() > 0:
				text.WriteString("." + step)
			default:
				text.WriteString(step)
			}
		}
	}
	return text.String()
}

// told returns the text that an Event about a change of the leaf must contain: its
// path. If the leaf is the key of a list element, it is the list, which then has
// another element.
func (l leaf) told() string {
	if parent, last := l.steps(); keyOf(parent) == last {
		return pathOf(l.path[:len(l.path)-2])
	}
	return l.String()
}

// keyOf returns the key field of a list's elements; empty for a list without keys.
func keyOf(list string) string {
	switch list {
	case "containers", "initContainers", "volumes", "env":
		return "name"
	case "volumeMounts":
		return "mountPath"
	}
	return ""
}

// in returns the leaf with its path and value in a live object. The value is nil if its
// list element is missing there.
func (l leaf) in(expected, live object) leaf {
	found, list := leaf{}, ""
	var want, have any = expected, live
	for _, step := range l.path {
		if index, ok := step.(int); ok {
			step = placeOf(list, want, have, index)
			want = kit.At(want, index)
		} else {
			want, list = kit.At(want, step), step.(string)
		}
		have = kit.At(have, step)
		found.path = append(found.path, step)
	}
	found.value = have
	return found
}

// placeOf returns the index in a live list of an element of an expected list, or the
// length of the live list.
func placeOf(list string, expected, live any, index int) int {
	key := keyOf(list)
	items, _ := live.([]any)
	if key == "" {
		return index
	}
	wanted := kit.At(expected, index, key)
	place := slices.IndexFunc(items, func(item any) bool { return kit.At(item, key) == wanted })
	if place < 0 {
		return len(items)
	}
	return place
}

// steps returns the list or object that has the leaf, and the last field of its path.
func (l leaf) steps() (parent, last string) {
	var fields []string
	for _, step := range l.path {
		if text, ok := step.(string); ok {
			fields = append(fields, text)
		}
	}
	return fields[max(len(fields)-2, 0)], fields[len(fields)-1]
}

// leavesOf returns all leaves in the order of their paths.
func leavesOf(value any, path ...any) []leaf {
	var found []leaf
	switch value := value.(type) {
	case object:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			found = append(found, leavesOf(value[name], append(slices.Clone(path), name)...)...)
		}
	case []any:
		for i, item := range value {
			found = append(found, leavesOf(item, append(slices.Clone(path), i)...)...)
		}
	default:
		found = append(found, leaf{path, value})
	}
	return found
}

// operation is an operation of a JSON Patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func replace(path []any, value any) operation {
	var text strings.Builder
	for _, step := range path {
		text.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(step)))
	}
	return operation{"replace", text.String(), value}
}

// changes returns ways to change a leaf. The API server accepts one of them, if the
// leaf can change. They change the leaf alone, a volume with all its mounts, or fields
// that must change together.
func (l leaf) changes(live *unstructured.Unstructured) [][]operation {
	parent, last := l.steps()
	switch {
	case parent == "updateStrategy":
		strategies := map[any]any{"OnDelete": "RollingUpdate", "RollingUpdate": "OnDelete"}
		return [][]operation{{replace(l.path[:len(l.path)-1], object{"type": strategies[l.value]})}}
	case (parent == "volumes" || parent == "volumeMounts") && last == "name":
		alone := [][]operation{}
		if parent == "volumeMounts" {
			for _, other := range volumesOf(live) {
				if other != l.value {
					alone = append(alone, []operation{replace(l.path, other)})
				}
			}
		}
		return append(alone, renameVolume(live, l.value))
	case last == "fieldPath":
		return [][]operation{{replace(l.path, "metadata.uid")}}
	case parent == "resourceFieldRef":
		return [][]operation{{replace(l.path, "limits.memory")}}
	}
	return [][]operation{{replace(l.path, other(l.value))}}
}

// other returns another value of the same type.
func other(value any) any {
	switch value := value.(type) {
	case string:
		return value + "x"
	case int64:
		return value + 1
	case bool:
		return !value
	}
	panic(fmt.Sprintf("a leaf is a %T", value))
}

func volumesOf(live *unstructured.Unstructured) []any {
	var names []any
	volumes, _ := kit.Field(live, "spec", "template", "spec", "volumes").([]any)
	for i := range volumes {
		names = append(names, kit.At(volumes, i, "name"))
	}
	return names
}

// renameVolume renames a volume in all places.
func renameVolume(live *unstructured.Unstructured, name any) []operation {
	var patch []operation
	template, _ := kit.Field(live, "spec", "template", "spec").(object)
	for _, leaf := range leavesOf(template, "spec", "template", "spec") {
		parent, last := leaf.steps()
		if (parent == "volumes" || parent == "volumeMounts") && last == "name" && leaf.value == name {
			patch = append(patch, replace(leaf.path, other(name)))
		}
	}
	return patch
}

// unchangeable returns the paths that the API server keeps constant: the identity of
// the object, the labels of its selector, and a StatefulSet's claims and order of Pods.
func unchangeable(expected object) []string {
	var paths []string
	for _, leaf := range leavesOf(expected) {
		path := leaf.String()
		switch {
		case path == "apiVersion", path == "kind", path == "metadata.name", path == "metadata.namespace",
			path == "spec.podManagementPolicy", strings.HasPrefix(path, "spec.selector."),
			path == "spec.template.metadata.labels.habitat-name", // part of the selector
			strings.HasPrefix(path, "spec.volumeClaimTemplates"):
			paths = append(paths, path)
		}
	}
	return paths
}

// A leaf is found, named and changed as the API requires.
func TestLeaves(t *testing.T) {
	t.Parallel()
	live := &unstructured.Unstructured{Object: object{"spec": object{"template": object{
		"metadata": object{"labels": object{"a.b/c": "d"}},
		"spec": object{
			"containers": []any{object{"name": "main", "volumeMounts": []any{object{"mountPath": "/a", "name": "v", "readOnly": true}}}},
			"volumes":    []any{object{"name": "v"}},
		},
	}}}}
	type said struct{ Path, Told, Patch string }
	var got []said
	for _, leaf := range leavesOf(live.Object) {
		for _, patch := range leaf.changes(live) {
			got = append(got, said{leaf.String(), leaf.told(), string(kit.JSON(t, patch))})
		}
	}
	const container = "spec.template.spec.containers[0]"
	both := `[{"op":"replace","path":"/spec/template/spec/containers/0/volumeMounts/0/name","value":"vx"},{"op":"replace","path":"/spec/template/spec/volumes/0/name","value":"vx"}]`
	want := []said{
		{`spec.template.metadata.labels["a.b/c"]`, `spec.template.metadata.labels["a.b/c"]`, `[{"op":"replace","path":"/spec/template/metadata/labels/a.b~1c","value":"dx"}]`},
		{container + ".name", "spec.template.spec.containers", `[{"op":"replace","path":"/spec/template/spec/containers/0/name","value":"mainx"}]`},
		{container + ".volumeMounts[0].mountPath", container + ".volumeMounts", `[{"op":"replace","path":"/spec/template/spec/containers/0/volumeMounts/0/mountPath","value":"/ax"}]`},
		{container + ".volumeMounts[0].name", container + ".volumeMounts[0].name", both},
		{container + ".volumeMounts[0].readOnly", container + ".volumeMounts[0].readOnly", `[{"op":"replace","path":"/spec/template/spec/containers/0/volumeMounts/0/readOnly","value":false}]`},
		{"spec.template.spec.volumes[0].name", "spec.template.spec.volumes", both},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

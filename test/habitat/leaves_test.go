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

// leaf is a value of an expected object that is no object and no list.
type leaf struct {
	path  []any // fields, and indices of lists
	value any
}

// String gives the path as the engine writes it: spec.template.spec.containers[0].image,
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

// told is what an Event about a change of the leaf has to name: its path, or where the
// leaf is the key of an element of a list, that list, which has another element then.
func (l leaf) told() string {
	if parent, last := l.steps(); keyOf(parent) == last {
		return pathOf(l.path[:len(l.path)-2])
	}
	return l.String()
}

// keyOf gives the field by which the elements of a list are known, whatever their
// order; empty for lists whose elements have their places.
func keyOf(list string) string {
	switch list {
	case "containers", "initContainers", "volumes", "env":
		return "name"
	case "volumeMounts":
		return "mountPath"
	}
	return ""
}

// in gives a leaf of an expected object with its path, and its value, in a live one.
// The value is nil if the element of a list that has it is not there.
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

// placeOf finds an element of an expected list in a live one; it is beyond the end if
// it is not there.
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

// steps gives the list or object that has the leaf, and the last field of its path.
func (l leaf) steps() (parent, last string) {
	var fields []string
	for _, step := range l.path {
		if text, ok := step.(string); ok {
			fields = append(fields, text)
		}
	}
	return fields[max(len(fields)-2, 0)], fields[len(fields)-1]
}

// leavesOf gives all leaves in the order of their paths.
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

// operation is one of a JSON Patch.
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

// changes are ways to change a leaf, one of which an API server that lets anybody
// change it takes: the leaf by itself; a volume with all that mount it; and what the
// API wants to go together.
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

// other gives another value of the same kind.
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

// renameVolume gives a volume another name, wherever it has one.
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

// unchangeable are the leaves of a workload that the API server lets nobody change:
// what the object is, by which Pods are found, and what a StatefulSet says of claims
// and of the order of its Pods.
func unchangeable(expected object) []string {
	var paths []string
	for _, leaf := range leavesOf(expected) {
		path := leaf.String()
		switch {
		case path == "apiVersion", path == "kind", path == "metadata.name", path == "metadata.namespace",
			path == "spec.podManagementPolicy", strings.HasPrefix(path, "spec.selector."),
			path == "spec.template.metadata.labels.habitat-name", // which the selector has
			strings.HasPrefix(path, "spec.volumeClaimTemplates"):
			paths = append(paths, path)
		}
	}
	return paths
}

// A leaf is found, named and changed as the API wants it.
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

package oracle

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/kit"
)

// edit is a changed value of an object. The value nil is removed.
type edit struct {
	path  schema.Path
	value any
}

// alter makes one random change in an object, of one value that the manifest has.
func alter(random *rand.Rand, manifest, object map[string]any) (what string, made edit) {
	all := spots(manifest, nil)
	slices.SortFunc(all, func(a, b schema.Path) int { return strings.Compare(a.String(), b.String()) })
	if random.IntN(3) == 0 { // most values of a large manifest are deep
		all = slices.DeleteFunc(all, func(path schema.Path) bool { return len(path) > 2 })
	}
	ways := drifts()
	names := slices.Sorted(maps.Keys(ways))
	for {
		name := names[random.IntN(len(names))]
		for range 20 { // not every value can be changed in this way
			path := all[random.IntN(len(all))]
			value, ok := ways[name](random, runtime.DeepCopyJSONValue(schema.ValueAt(object, path)))
			if ok && set(object, path, value) {
				return name + " " + path.String(), edit{path, value}
			}
		}
	}
}

// write writes a changed object in a random way, as a random client.
func (w *worker) write(t *testing.T, s *subject, d *drift, changed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	manager, name := fmt.Sprint("editor-", w.random.IntN(1000)), s.object.GetName()
	typed, unknown := scheme.Scheme.New(s.object.GroupVersionKind())
	was, is := kit.JSON(t, d.before.Object), kit.JSON(t, changed.Object)
	way := w.random.IntN(4)
	d.what = append(d.what, []string{"update", "merge patch", "strategic merge patch", "server-side apply"}[way])
	switch {
	case way == 1:
		patch, err := jsonpatch.CreateMergePatch(was, is)
		kit.Must(t, err)
		return s.client.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	case way == 2 && unknown == nil:
		patch, err := twoWay(was, is, typed)
		if err != nil {
			return nil, err
		}
		return s.client.Patch(t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	case way == 3:
		body := &unstructured.Unstructured{Object: map[string]any{}}
		body.SetGroupVersionKind(s.object.GroupVersionKind())
		body.SetName(name)
		body.SetNamespace(s.object.GetNamespace())
		for _, one := range d.edits {
			var fields []string
			for _, step := range one.path {
				if step.Index >= 0 { // a list is applied as a whole
					break
				}
				fields = append(fields, step.Field)
			}
			value, found, err := unstructured.NestedFieldCopy(changed.Object, fields...)
			if err != nil || !found || unstructured.SetNestedField(body.Object, value, fields...) != nil {
				return nil, fmt.Errorf("an apply removes no field: %v", fields)
			}
		}
		return s.client.Apply(t.Context(), name, body, metav1.ApplyOptions{FieldManager: manager, Force: true})
	}
	return s.client.Update(t.Context(), changed, metav1.UpdateOptions{FieldManager: manager})
}

// twoWay makes a strategic merge patch. The library panics if a key is a list.
func twoWay(was, is []byte, typed any) (patch []byte, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("%v", problem)
		}
	}()
	return strategicpatch.CreateTwoWayMergePatch(was, is, typed)
}

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
		"fill": func(_ *rand.Rand, value any) (any, bool) {
			switch value := value.(type) {
			case []any:
				return append(slices.Clone(value), "something"), len(value) == 0
			case map[string]any:
				value["something"] = "something"
				return value, true
			}
			return nil, false
		},
		"wrap": func(random *rand.Rand, value any) (any, bool) {
			if random.IntN(2) == 0 {
				return []any{value}, true
			}
			return map[string]any{"something": value}, true
		},
		"choose": func(random *rand.Rand, value any) (any, bool) {
			fields, ok := value.(map[string]any)
			return value, ok && choose(random, fields)
		},
	}
}

// unions are fields of which an object has one, each with a value.
var unions = []map[string]any{
	{"emptyDir": map[string]any{}, "configMap": map[string]any{"name": "other"}, "secret": map[string]any{"secretName": "other"}, "hostPath": map[string]any{"path": "/other"}},
	{"value": "other", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.name"}}},
	{"httpGet": map[string]any{"path": "/", "port": int64(1)}, "tcpSocket": map[string]any{"port": int64(1)}, "exec": map[string]any{"command": []any{"true"}}},
	{"minAvailable": int64(1), "maxUnavailable": int64(2)},
	{"ipBlock": map[string]any{"cidr": "10.9.0.0/16"}, "podSelector": map[string]any{}},
	{"service": map[string]any{"name": "other", "port": map[string]any{"number": int64(1)}}, "resource": map[string]any{"kind": "Other", "name": "other"}},
	{"number": int64(7), "name": "other"},
	{"averageUtilization": int64(7), "averageValue": "7", "value": "7"},
}

// choose replaces a member of a union by another one.
func choose(random *rand.Rand, fields map[string]any) bool {
	switch fields["type"] {
	case "Recreate":
		maps.Copy(fields, map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": int64(2), "maxUnavailable": int64(1)}})
		return true
	case "RollingUpdate":
		fields["type"] = "Recreate"
		delete(fields, "rollingUpdate")
		return true
	}
	for _, union := range unions {
		members := slices.Sorted(maps.Keys(union))
		at := slices.IndexFunc(members, func(name string) bool { return fields[name] != nil })
		if at < 0 {
			continue
		}
		other := members[(at+1+random.IntN(len(members)-1))%len(members)]
		delete(fields, members[at])
		fields[other] = runtime.DeepCopyJSONValue(union[other])
		return true
	}
	return false
}

// thin returns a random part of an observer schema. It keeps the identity of the object, and the names of
// elements.
func thin(random *rand.Rand, value any, depth int) any {
	switch value := value.(type) {
	case map[string]any:
		part := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if _, isText := value[name].(string); isText || name == "metadata" || name == "name" || depth > 0 && random.IntN(4) > 0 || random.IntN(8) > 0 {
				part[name] = thin(random, value[name], depth+1)
			}
		}
		return part
	case []any:
		elements := value[:random.IntN(len(value))] // without the control dictionary
		if random.IntN(2) == 0 {
			elements = value[:len(value)-1]
		}
		all := int64(len(value) - 1)
		control := map[string]any{schema.MinLengthKey: random.Int64N(all + 1), schema.MaxLengthKey: []int64{0, all, all + 1}[random.IntN(3)]}
		part := make([]any, 0, len(elements)+1)
		for _, element := range elements {
			part = append(part, thin(random, element, depth+1))
		}
		return append(part, control)
	}
	return value
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
		if names := slices.Sorted(maps.Keys(value)); len(names) > 0 {
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
		if path[last].Index >= 0 {
			return false
		}
		if value == nil {
			delete(parent, path[last].Field)
		} else {
			parent[path[last].Field] = value
		}
		return true
	case []any:
		if path[last].Index < 0 || path[last].Index >= len(parent) { // something else is there by now
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

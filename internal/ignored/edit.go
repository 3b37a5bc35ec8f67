package ignored

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// edit collects what is ignored of one object, and then changes its manifest and its observer schema.
// It collects first, because the removal of an element moves others.
type edit struct {
	Target

	name  string
	paths []schema.Path
	lists []schema.Path
	// reasons has why a path is ignored. The first rule counts.
	reasons map[string]string

	ignored []Ignored
	open    []schema.Path
	notes   []string
}

func (e *edit) ignore(found places, reason string) {
	for _, path := range found.paths {
		switch {
		case e.isIdentity(path):
			e.note(path, reason, "it identifies the object")
			continue
		case e.isKey(path):
			e.note(path, reason, "it identifies the element of the list")
			continue
		}
		if _, known := e.reasons[path.String()]; !known {
			e.reasons[path.String()] = reason
			e.paths = append(e.paths, path)
		}
	}
	e.lists = append(e.lists, found.lists...)
}

func (e *edit) note(path schema.Path, reason, why string) {
	e.notes = append(e.notes, fmt.Sprintf("%s of %s is observed, although %s: %s", path, e.name, reason, why))
}

func (e *edit) isIdentity(path schema.Path) bool {
	return slices.Contains([]string{"apiVersion", "kind", "metadata.name"}, path.String())
}

// isKey reports whether the elements of a list are found by the field at the path. An element with
// another value is another element.
func (e *edit) isKey(path schema.Path) bool {
	last := len(path) - 1
	return last > 0 && path[last-1].Index >= 0 &&
		slices.ContainsFunc(schema.KeysAt(e.Kind, path[:last-1]), func(key schema.Key) bool { return key.Name == path[last].Field })
}

// run changes the object: the last elements of a list first, because the others keep their places.
func (e *edit) run() {
	slices.SortFunc(e.paths, func(a, b schema.Path) int { return comparePaths(b, a) })
	whole := e.wholeLists()
	for _, path := range e.paths {
		reason := e.reasons[path.String()]
		last := len(path) - 1
		switch {
		case slices.ContainsFunc(e.paths, func(above schema.Path) bool { return len(above) < len(path) && startsWith(path, above) }):
		case last < 0 || path[last].Index < 0:
			e.removeField(path, reason)
		case whole[path[:last].String()]:
			e.removeField(path[:last], reason)
		default:
			e.removeElement(path, reason)
		}
	}
	slices.SortFunc(e.ignored, func(a, b Ignored) int { return comparePaths(a.Path, b.Path) })
	slices.SortFunc(e.lists, comparePaths)
	for _, list := range slices.CompactFunc(e.lists, slices.Equal[schema.Path]) {
		e.openList(list)
	}
}

// wholeLists returns the lists all of whose elements are ignored.
func (e *edit) wholeLists() map[string]bool {
	whole, ignored := map[string]bool{}, map[string]int{}
	for _, path := range e.paths {
		if last := len(path) - 1; last >= 0 && path[last].Index >= 0 {
			list := path[:last]
			ignored[list.String()]++
			desired, _ := schema.ValueAt(e.Manifest, list).([]any)
			whole[list.String()] = ignored[list.String()] == len(desired)
		}
	}
	return whole
}

// removeField removes a field from the observer schema, and the objects around it that are empty
// without it. Of the whole object and of its metadata, the identity stays.
func (e *edit) removeField(path schema.Path, reason string) {
	if len(path) == 0 || path.String() == "metadata" {
		fields, _ := schema.ValueAt(e.Schema, path).(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if inner := below(path, name, -1); !e.isIdentity(inner) {
				e.removeField(inner, reason)
			}
		}
		return
	}
	parent, _ := schema.ValueAt(e.Schema, path[:len(path)-1]).(map[string]any)
	name := path[len(path)-1].Field
	if _, observed := parent[name]; !observed {
		return
	}
	e.ignored = append(e.ignored, Ignored{path, reason})
	for {
		delete(parent, name)
		path = path[:len(path)-1]
		if len(parent) > 0 || len(path) == 0 || path[len(path)-1].Index >= 0 {
			return
		}
		parent, _ = schema.ValueAt(e.Schema, path[:len(path)-1]).(map[string]any)
		name = path[len(path)-1].Field
	}
}

// removeElement removes an element from manifest and observer schema. In a list whose elements are
// found by their places, an element before others keeps its place.
func (e *edit) removeElement(path schema.Path, reason string) {
	above, at := path[:len(path)-1], path[len(path)-1].Index
	desired, _ := schema.ValueAt(e.Manifest, above).([]any)
	observed, _ := schema.ValueAt(e.Schema, above).([]any)
	switch {
	case len(observed) == 0:
		return // the list is not observed
	case at == len(desired)-1, len(schema.KeysAt(e.Kind, above)) > 0:
		setAt(e.Manifest, above, slices.Delete(slices.Clone(desired), at, at+1))
		if at < len(observed)-1 {
			observed = slices.Delete(slices.Clone(observed), at, at+1)
			setAt(e.Schema, above, observed)
		}
		shorten(observed)
	case at >= len(observed)-1:
		return // only the elements before it are observed
	default:
		if _, ok := observed[at].(map[string]any); !ok {
			e.note(path, reason, "the elements after it are found by their places")
			return
		}
		e.notes = append(e.notes, fmt.Sprintf("%s of %s may change, and may not be removed: the elements after it are found by their places", path, e.name))
		observed[at] = map[string]any{}
	}
	e.ignored = append(e.ignored, Ignored{path, reason})
}

// shorten lowers the minimal length of a list by one.
func shorten(observed []any) {
	control, _ := observed[len(observed)-1].(map[string]any)
	if least, ok := control[schema.MinLengthKey].(int64); ok && least > 0 {
		control[schema.MinLengthKey] = least - 1
	}
}

// openList lets a list get longer.
func (e *edit) openList(path schema.Path) {
	observed, _ := schema.ValueAt(e.Schema, path).([]any)
	if len(observed) == 0 {
		return
	}
	if control, _ := observed[len(observed)-1].(map[string]any); control[schema.MaxLengthKey] != int64(0) {
		control[schema.MaxLengthKey] = int64(0)
		e.open = append(e.open, path)
	}
}

func setAt(root map[string]any, path schema.Path, value any) {
	last := path[len(path)-1]
	switch parent := schema.ValueAt(root, path[:len(path)-1]).(type) {
	case map[string]any:
		parent[last.Field] = value
	case []any:
		parent[last.Index] = value
	}
}

func startsWith(path, above schema.Path) bool {
	return len(above) <= len(path) && slices.Equal(path[:len(above)], above)
}

// comparePaths sorts paths by their steps, and elements by their indices.
func comparePaths(a, b schema.Path) int {
	return slices.CompareFunc(a, b, func(a, b schema.Step) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), cmp.Compare(a.Index, b.Index))
	})
}

// Target is an object whose observer schema is changed.
type Target struct {
	Live *unstructured.Unstructured
	// Manifest and Schema are changed in place. The elements of the lists in the schema belong to those
	// in the manifest with the same index.
	Manifest, Schema map[string]any
	// Kind is nil if the type of the object is unknown.
	Kind schema.Type
}

// Ignored is a place that is not observed, and why.
type Ignored struct {
	Path   schema.Path
	Reason string
}

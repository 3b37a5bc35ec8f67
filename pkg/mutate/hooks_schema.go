package mutate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// extension extends the schema of a workload to observe the additions.
type extension struct {
	additions

	// isDefault reports that the schema is a default one. If the manifest sets a list to null, a
	// default schema does not observe the list as a whole. It treats the list as an omitted one.
	isDefault bool

	refusals field.ErrorList
	warnings []string
}

// of returns the schema of a workload, extended. Fields that are observed as a whole have the
// additions already.
func (e *extension) of(w workload, document map[string]any, at string) map[string]any {
	extended := runtime.DeepCopyJSON(document)
	spec := makeObject(extended, w.path)
	if spec == nil {
		return extended
	}
	at = strings.Join(append([]string{at}, w.path...), ".")
	e.extend(spec, w.spec(), e.pod, at)
	for _, name := range w.lists {
		e.extendContainers(spec, w.spec(), name, at+"."+name)
	}
	return extended
}

// makeObject returns the object of a schema at the path, and adds missing ones. It returns nil if a
// field of the path is observed as a whole.
func makeObject(fields map[string]any, path []string) map[string]any {
	for _, name := range path {
		if _, ok := fields[name]; !ok {
			fields[name] = map[string]any{}
		}
		next, ok := fields[name].(map[string]any)
		if !ok {
			return nil
		}
		fields = next
	}
	return fields
}

func (e *extension) extendContainers(spec, described map[string]any, name, at string) {
	containers, _ := listOf(described[name])
	if isWhole(spec, name) || len(containers) == 0 {
		return
	}
	observed, _ := observedAt(spec, name) // manifest and schema have a list there
	if observed.open(len(containers)) {
		e.warnings = append(e.warnings, requires(at))
	}
	for k, container := range containers {
		fields, ok := observed.items[k].(map[string]any)
		if given, isObject := container.(map[string]any); ok && isObject {
			e.extend(fields, given, e.container, fmt.Sprintf("%s[%d]", at, k))
		}
	}
	spec[name] = observed.document()
}

// extend extends the lists in an object of a schema. described is that object in the manifest.
func (e *extension) extend(fields, described map[string]any, additions []addition, at string) {
	for _, a := range additions {
		if isWhole(fields, a.list) && !e.isDefault {
			continue
		}
		items, _ := listOf(described[a.list])
		observed, ok := observedAt(fields, a.list)
		switch at := at + "." + a.list; {
		case !ok:
			e.refusals = append(e.refusals, invalid(at, "The schema expects an object, but the hooks add to a list: write it as a list, or leave it out"))
		case !a.isFound(observed.control[schema.ListKeyKey]):
			e.refusals = append(e.refusals, invalid(at, fmt.Sprintf(
				"these keys do not identify the additions of the hooks: name %s in %s, or leave it out", a.keys[0], schema.ListKeyKey)))
		case observed.insert(len(items), a.pieces):
			e.warnings = append(e.warnings, requires(at))
		}
		fields[a.list] = observed.document()
	}
}

// requires returns a warning of a raised minimum.
func requires(at string) string {
	return fmt.Sprintf("%s: the hooks require that every observed element of the manifest exists: raise %s, or leave the elements out", at, schema.MinLengthKey)
}

// isWhole reports whether a field is observed as a whole.
func isWhole(fields map[string]any, name string) bool {
	value, named := fields[name]
	return named && value == nil
}

// observedList is a list of an observer schema.
type observedList struct {
	items   []any
	control map[string]any
}

// observedAt returns the list of a schema at a field. The list has no bounds if the field is
// missing or null. observedAt reports whether the field may be a list.
func observedAt(fields map[string]any, name string) (observedList, bool) {
	value, ok := listOf(fields[name])
	if len(value) == 0 {
		return observedList{control: map[string]any{schema.MinLengthKey: int64(0), schema.MaxLengthKey: int64(0)}}, ok
	}
	last := len(value) - 1
	control, _ := value[last].(map[string]any)
	return observedList{items: value[:last:last], control: control}, true
}

func (l *observedList) document() []any { return append(l.items, l.control) }

func (l *observedList) bound(name string) int64 {
	bound, _ := l.control[name].(int64)
	return bound
}

// cover adds unobserved elements, up to this number. It raises a maximum below their number; 0
// stays unbounded.
func (l *observedList) cover(elements int) {
	for len(l.items) < elements {
		l.items = append(l.items, map[string]any{})
	}
	if most := l.bound(schema.MaxLengthKey); most != 0 {
		l.control[schema.MaxLengthKey] = max(most, int64(len(l.items)))
	}
}

// open covers this number of elements, and each of them becomes observed. Elements that were
// unobserved before could count for others in the minimum. open therefore raises the minimum by
// their number, unless it is 0, and reports whether it did.
func (l *observedList) open(elements int) (raised bool) {
	least, looked := l.bound(schema.MinLengthKey), observing(l.items[:min(elements, len(l.items))])
	l.cover(elements)
	asked := min(least, looked)
	if asked == 0 {
		return false
	}
	l.control[schema.MinLengthKey] = max(least, asked+int64(elements)-looked)
	return l.bound(schema.MinLengthKey) > least
}

// insert observes the added elements, which follow the given elements of the manifest. In the
// schema, they follow the elements for the manifest's, and precede those for later ones. Each
// element therefore stays at its observed index.
//
// Both bounds grow by the number of added elements, so that the room for other elements is
// unchanged.
//
// If elements have keys, only the minimum notices an absent one, and observed elements count first.
// With a minimum below their number, the token could be removed unnoticed. insert therefore raises
// the minimum to that number, and reports whether it was lower. Unobserved elements may be removed
// as before.
func (l *observedList) insert(given int, pieces []piece) (raised bool) {
	l.cover(given)
	added := make([]any, 0, len(pieces))
	for _, p := range pieces {
		added = append(added, observed(p.fields))
	}
	most, least, looked := l.bound(schema.MaxLengthKey), l.bound(schema.MinLengthKey), observing(l.items[:given])
	l.items = slices.Insert(l.items, given, added...)
	if most != 0 {
		l.control[schema.MaxLengthKey] = most + int64(len(pieces))
	}
	l.control[schema.MinLengthKey] = max(least, looked) + int64(len(pieces))
	return least < looked
}

// observing returns the number of elements with an observed field.
func observing(items []any) int64 {
	var observed int64
	for _, item := range items {
		if fields, isObject := item.(map[string]any); !isObject || len(fields) > 0 {
			observed++
		}
	}
	return observed
}

// observed returns the schema that observes each value of an object.
func observed(fields map[string]any) map[string]any {
	leaves := make(map[string]any, len(fields))
	for name, value := range fields {
		leaves[name] = nil
		if object, ok := value.(map[string]any); ok {
			leaves[name] = observed(object)
		}
	}
	return leaves
}

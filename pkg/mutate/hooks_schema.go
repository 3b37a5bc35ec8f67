package mutate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// openNulls has a default schema not observe as a whole the lists that the manifest
// says to be null: they are as those of which it says nothing.
func (a additions) openNulls(w workload, document map[string]any) {
	spec := below(document, w.path...)
	openNullsOf(spec, a.pod)
	for _, container := range w.containers(spec) {
		openNullsOf(container, a.container)
	}
}

func openNullsOf(fields map[string]any, additions []addition) {
	for _, a := range additions {
		if isWhole(fields, a.list) {
			delete(fields, a.list)
		}
	}
}

// extended gives the schema of a workload with what is added observed. What
// is observed as a whole has it already.
func (i *injector) extended(w workload, document map[string]any, at string) map[string]any {
	extended := runtime.DeepCopyJSON(document)
	spec := reach(extended, w.path)
	if spec == nil {
		return extended
	}
	at = strings.Join(append([]string{at}, w.path...), ".")
	i.extend(spec, w.spec(), i.pod, at)
	for _, name := range w.lists {
		i.extendContainers(spec, w.spec(), name, at+"."+name)
	}
	return extended
}

// reach gives the object of a schema at the path, made where there is none; nil if
// it is observed as a whole, or something around it.
func reach(fields map[string]any, path []string) map[string]any {
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

func (i *injector) extendContainers(spec, described map[string]any, name, at string) {
	containers, _ := listOf(described[name])
	if isWhole(spec, name) || len(containers) == 0 {
		return
	}
	observed, _ := observedAt(spec, name) // the manifest has a list there, and so has the schema
	if observed.open(len(containers)) {
		i.warnings = append(i.warnings, requires(at))
	}
	for k, container := range containers {
		fields, ok := observed.items[k].(map[string]any)
		if given, isObject := container.(map[string]any); ok && isObject {
			i.extend(fields, given, i.container, fmt.Sprintf("%s[%d]", at, k))
		}
	}
	spec[name] = observed.document()
}

// extend extends the lists in an object of a schema, beside what the manifest has there.
func (i *injector) extend(fields, described map[string]any, additions []addition, at string) {
	for _, a := range additions {
		if isWhole(fields, a.list) {
			continue
		}
		items, _ := listOf(described[a.list])
		observed, ok := observedAt(fields, a.list)
		switch at := at + "." + a.list; {
		case !ok:
			i.refusals = append(i.refusals, invalid(at, "The schema expects an object, and the hooks add to a list: write it as a list, or leave it out"))
		case !a.isFound(observed.control[schema.ListKeyKey]):
			i.refusals = append(i.refusals, invalid(at, fmt.Sprintf(
				"what the hooks add is not found by these keys: name %s in %s, or leave it out", a.keys[0], schema.ListKeyKey)))
		case observed.insert(len(items), a.pieces):
			i.warnings = append(i.warnings, requires(at))
		}
		fields[a.list] = observed.document()
	}
}

// requires warns of a minimum that was raised.
func requires(at string) string {
	return fmt.Sprintf("%s: because of the hooks no element of the manifest's that is observed may be removed: raise %s, or leave the elements out", at, schema.MinLengthKey)
}

// isWhole tells if a field is observed as a whole.
func isWhole(fields map[string]any, name string) bool {
	value, named := fields[name]
	return named && value == nil
}

// isFound tells if each added element is found by the keys that the user has stated
// for the list. What else it says, the others say as well, or a server drops.
func (a addition) isFound(stated any) bool {
	names, isList := stated.([]any)
	if !isList && stated != nil {
		names = []any{stated}
	}
	return !slices.ContainsFunc(names, func(raw any) bool {
		name, _ := raw.(string)
		return !slices.Contains(a.keys, name)
	})
}

// observedList is a list of an observer schema.
type observedList struct {
	items   []any
	control map[string]any
}

// observedAt gives the list of a schema at a field. A missing one has no bounds;
// something else is none.
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

// cover fills the list up to so many elements, which are not looked into. A
// maximum is raised to their number, below which it is a mistake; 0 stays no bound.
func (l *observedList) cover(elements int) {
	for len(l.items) < elements {
		l.items = append(l.items, map[string]any{})
	}
	l.raise(int64(len(l.items)))
}

func (l *observedList) raise(least int64) {
	if most := l.bound(schema.MaxLengthKey); most != 0 {
		l.control[schema.MaxLengthKey] = max(most, least)
	}
}

func (l *observedList) bound(name string) int64 {
	bound, _ := l.control[name].(int64)
	return bound
}

// open covers so many elements, each of which will be looked into. Those that were
// not stand in for those that were, as far as the minimum goes, and so it is raised
// by their number, unless it asks for none. It tells if it was.
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

// insert observes elements that were added to a list behind the manifest's, of
// which there are given. They are inserted where they are in the list, behind the
// elements of the schema that belong to the manifest's, and before those that
// belong to whatever comes after: there stays what was observed.
//
// Both bounds grow by their number, so that the list has as much room for others
// as before; a maximum of 0 stays no bound, and one that is below the number of
// elements, as the manifest may violate it by itself, is raised to it.
//
// Where the elements have keys, an absent one is missed by the minimum only, which is
// asked of those first of which something is observed, whichever they are: with one
// that is below their number somebody could take the token away. So it is raised to
// that number, and tells if the user had set it lower. Elements of which nothing is
// observed may be removed as before.
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

// observing gives how many of the elements are looked into.
func observing(items []any) int64 {
	var observed int64
	for _, item := range items {
		if fields, isObject := item.(map[string]any); !isObject || len(fields) > 0 {
			observed++
		}
	}
	return observed
}

// observed gives the schema that observes each value of an object.
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

package blame

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json" // reads integers as such

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Index answers [Of] for all fields of one object. Building it takes time in proportion to the object and its
// managedFields, and a question takes time in proportion to its path.
type Index struct {
	culprits []Culprit
	root     *owned
}

// owned has the entries of managedFields that contain a place, and those whose set ends there and so
// contains everything below. Both have the indices of entries.
type owned struct {
	entries, ends []int
	fields        map[string]*owned
	items         map[int]*owned
}

// IndexOf returns the index of an object.
func IndexOf(live map[string]any) Index {
	managed, _, _ := unstructured.NestedFieldNoCopy(live, "metadata", "managedFields")
	entries, _ := managed.([]any)
	index := Index{root: new(owned)}
	for _, entry := range entries {
		entry, _ := entry.(map[string]any)
		if fields, ok := entry["fieldsV1"].(map[string]any); ok && !isLeaf(fields) {
			index.root.add(len(index.culprits), fields, live)
			index.culprits = append(index.culprits, culpritOf(entry))
		}
	}
	return index
}

// add records the fields of one entry at a place with this value.
func (o *owned) add(entry int, fields map[string]any, value any) {
	o.entries = append(o.entries, entry)
	if isLeaf(fields) {
		o.ends = append(o.ends, entry)
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, below := range fields {
			field, isField := strings.CutPrefix(name, "f:")
			if inner, ok := below.(map[string]any); ok && isField {
				o.field(field).add(entry, inner, value[field])
			}
		}
	case []any:
		keys := keysOf(fields)
		for i, element := range value {
			if inner, ok := fields[keys.name(element)].(map[string]any); ok {
				o.item(i).add(entry, inner, element)
			}
		}
	}
}

// listKeys has the names of list elements among managed fields, by the names of their key fields and
// then by the values of these.
type listKeys []listKey

type listKey struct {
	fields []string
	names  map[string]string
}

func keysOf(fields map[string]any) listKeys {
	var keys listKeys
	for name := range fields {
		text, ok := strings.CutPrefix(name, "k:")
		var key map[string]any
		if !ok || json.Unmarshal([]byte(text), &key) != nil {
			continue
		}
		of := slices.Sorted(maps.Keys(key))
		i := slices.IndexFunc(keys, func(one listKey) bool { return slices.Equal(one.fields, of) })
		if i < 0 {
			i, keys = len(keys), append(keys, listKey{of, map[string]string{}})
		}
		keys[i].names[keys[i].values(key)] = name
	}
	return keys
}

func (k listKey) values(of map[string]any) string {
	values := make([]any, 0, len(k.fields))
	for _, field := range k.fields {
		values = append(values, fmt.Sprint(of[field]))
	}
	return fmt.Sprintf("%q", values)
}

// name returns the name that a list element has among the managed fields.
func (k listKeys) name(element any) string {
	if object, ok := element.(map[string]any); ok {
		for _, key := range k {
			if name, found := key.names[key.values(object)]; found {
				return name
			}
		}
	}
	return valueName(element)
}

func (o *owned) field(name string) *owned {
	if o.fields == nil {
		o.fields = map[string]*owned{}
	}
	if o.fields[name] == nil {
		o.fields[name] = new(owned)
	}
	return o.fields[name]
}

func (o *owned) item(i int) *owned {
	if o.items == nil {
		o.items = map[int]*owned{}
	}
	if o.items[i] == nil {
		o.items[i] = new(owned)
	}
	return o.items[i]
}

// Of returns the manager that wrote a field last, as [Of] does without a self.
func (x Index) Of(path schema.Path) Culprit {
	var entries []int
	at := x.root
	for i := 0; at != nil; i++ {
		if i == len(path) {
			entries = append(entries, at.entries...)
			break
		}
		entries = append(entries, at.ends...)
		if path[i].Index < 0 {
			at = at.fields[path[i].Field]
		} else {
			at = at.items[path[i].Index]
		}
	}
	slices.Sort(entries)
	var last Culprit
	for _, entry := range entries {
		culprit := x.culprits[entry]
		if culprit.Known() && (!last.Known() || culprit.Time.After(last.Time)) {
			last = culprit
		}
	}
	return last
}

package schema_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

const (
	minLength = "observer_schema_list_min_length"
	maxLength = "observer_schema_list_max_length"

	currentLength = "observer_schema_list_current_length"
	listKey       = "observer_schema_list_key"
)

// sample is a schema with two manifests and a live object of similar shape.
type sample struct {
	document, first, second, live object
	schema                        schema.Schema
}

// objects returns a copy of the arguments of all functions.
func (s sample) objects() []object {
	return []object{runtime.DeepCopyJSON(s.first), runtime.DeepCopyJSON(s.second), runtime.DeepCopyJSON(s.live)}
}

// tape is a row of choices. At its end each choice is 0, which selects the smallest value. A
// fuzzer can therefore drive it.
type tape []byte

func (t *tape) below(n int) int {
	if len(*t) == 0 {
		return 0
	}
	choice := int((*t)[0]) % n
	*t = (*t)[1:]
	return choice
}

func (t *tape) sample() sample {
	document := complete(object{"spec": t.node(0), "status": t.node(2), "metadata": t.metadata(nil)})
	first := complete(object{"spec": t.value(document["spec"]), "status": t.value(document["status"]), "metadata": t.metadata("demo")})
	second := complete(t.edit(runtime.DeepCopyJSON(first)).(object))
	live := complete(object{"spec": t.value(document["spec"])})
	if t.below(3) > 0 { // most live objects are close to the desired state
		live = complete(t.edit(runtime.DeepCopyJSON(first)).(object))
	}
	if t.below(3) == 1 {
		live["metadata"] = t.metadata("other")
		complete(live)
	}
	return sample{document: document, first: first, second: second, live: live}
}

// metadata has a namespace, or none for a cluster-scoped object.
func (t *tape) metadata(namespace any) object {
	if t.below(3) == 0 {
		return object{}
	}
	return object{"namespace": namespace}
}

// names have characters that paths and pointers must quote.
func names() []string { return []string{"a", "b/~c", "d.e[0]", "namespace"} }

// keyNames returns the fields that lists have as keys.
func keyNames() []string { return []string{"name", "port"} }

// node returns the schema of a value.
func (t *tape) node(depth int) any {
	kind := t.below(5)
	switch {
	case depth >= 4 || kind == 0:
		return nil
	case kind < 3:
		return t.fields(depth)
	}
	items := make([]any, t.below(3))
	keys := t.keys()
	for i := range items {
		items[i] = t.node(depth + 1)
		if keys != nil && t.below(4) > 0 {
			items[i] = t.element(depth + 1)
		}
	}
	return append(items, t.control(len(items), keys))
}

// fields returns the schema of an object.
func (t *tape) fields(depth int) object {
	fields := object{}
	for _, name := range names() {
		if t.below(3) > 0 {
			fields[name] = t.node(depth + 1)
		}
	}
	return fields
}

// element returns the schema of an element with a key, which may be observed.
func (t *tape) element(depth int) object {
	fields := t.fields(depth)
	for _, name := range keyNames() {
		if t.below(3) == 1 {
			fields[name] = nil
		}
	}
	return fields
}

// control returns the control dictionary of a list with this many observed elements.
func (t *tape) control(observed int, keys any) object {
	least, most := t.below(4), 0
	if t.below(2) > 0 {
		most = max(least, observed) + t.below(2)
	}
	control := object{minLength: int64(least), maxLength: int64(most)}
	if keys != nil {
		control[listKey] = keys
	}
	return control
}

// keys returns the keys of a list in the notation of the control dictionary, or nil.
func (t *tape) keys() any {
	return []any{nil, "name", []any{"name", "port"}}[t.below(3)]
}

// value returns a value that mostly has the shape of the schema.
func (t *tape) value(node any) any {
	switch t.below(12) {
	case 0:
		return nil
	case 1:
		return t.anything(2)
	}
	switch node := node.(type) {
	case object:
		fields := object{}
		for _, name := range append(names(), keyNames()...) {
			if child, ok := node[name]; ok && t.below(5) > 0 {
				fields[name] = t.value(child)
			}
		}
		if t.below(3) == 1 {
			fields["extra"] = t.anything(1)
		}
		return fields
	case []any:
		items := make([]any, t.below(len(node)+2))
		for i := range items {
			items[i] = t.anything(1)
			if i < len(node)-1 {
				items[i] = t.value(node[i])
			}
		}
		if node[len(node)-1].(object)[listKey] != nil {
			t.number(items)
		}
		return items
	}
	return t.anything(1)
}

// number assigns a unique key to most elements, and a shared key to some.
func (t *tape) number(items []any) {
	first := t.below(4)
	for i := range items {
		if t.below(16) == 1 {
			continue // without a key
		}
		fields, ok := items[i].(object)
		if !ok {
			fields = object{}
			items[i] = fields
		}
		t.name(fields, first+i)
	}
}

// name sets the key of an element to this number. Some keys are the same number in two
// notations.
func (t *tape) name(fields object, number int) {
	fields["name"] = []any{"x", "y", int64(1), "z", float64(1), "w", "1", false}[number%8]
	switch t.below(8) {
	case 1:
		delete(fields, "name")
		fields["port"] = int64(number)
	case 2, 3:
		fields["port"] = int64(t.below(2))
	case 4:
		fields["name"] = []any{"x", float64(1), object{}, nil}[t.below(4)]
	}
}

func (t *tape) anything(depth int) any {
	switch kind := t.below(8); {
	case kind == 0 || depth == 0 && kind > 5:
		return nil
	case kind < 3:
		return []any{"x", "y", "1"}[t.below(3)]
	case kind == 3:
		return []any{int64(1), float64(1), int64(1 << 53), 0.5}[t.below(4)]
	case kind == 4:
		return false
	case kind == 5:
		return ""
	case kind == 6:
		return object{names()[t.below(4)]: t.anything(depth - 1)}
	}
	return []any{t.anything(depth - 1)}
}

// edit changes a few places of a value.
func (t *tape) edit(value any) any {
	switch value := value.(type) {
	case object:
		for _, name := range append(names(), "port", "spec", "status", "extra") {
			if _, ok := value[name]; ok {
				value[name] = t.editOne(value[name])
			}
		}
		if t.below(6) == 1 {
			delete(value, names()[t.below(4)])
		}
	case []any:
		for i := range value {
			value[i] = t.editOne(value[i])
		}
		if isNamed(value) {
			return t.rearrange(value)
		}
		switch t.below(6) {
		case 1:
			return append(value, t.anything(1))
		case 2:
			return value[:len(value)/2]
		}
	}
	return value
}

// isNamed reports whether a list looks like one whose elements have keys.
func isNamed(items []any) bool {
	for _, item := range items {
		if fields, ok := item.(object); ok && fields["name"] != nil {
			return true
		}
	}
	return false
}

// rearrange changes a list with keys as clients do: elements are added, removed and moved.
func (t *tape) rearrange(items []any) []any {
	for range t.below(3) {
		i, j := t.below(len(items)), t.below(len(items))
		items[i], items[j] = items[j], items[i]
	}
	for range t.below(3) {
		items = slices.Insert(items, t.below(len(items)+1), t.newcomer(items))
	}
	for range t.below(3) {
		if len(items) > 0 {
			i := t.below(len(items))
			items = slices.Delete(items, i, i+1)
		}
	}
	return items
}

// newcomer returns an element for a list: a new one, a copy of a present one, or one without a
// key.
func (t *tape) newcomer(items []any) any {
	switch t.below(8) {
	case 1:
		return t.anything(1)
	case 2:
		return runtime.DeepCopyJSONValue(items[t.below(len(items))])
	}
	fields := object{names()[t.below(4)]: t.anything(1)}
	t.name(fields, t.below(8))
	return fields
}

func (t *tape) editOne(value any) any {
	if t.below(8) == 1 {
		return t.anything(1)
	}
	return t.edit(value)
}

// complete sets the identity that all tests share, where a resource has none.
func complete(resource object) object {
	set := func(fields object, name string, value any) {
		if fields[name] == nil {
			fields[name] = value
		}
	}
	set(resource, "apiVersion", "v1")
	set(resource, "kind", "Song")
	set(resource, "metadata", object{})
	set(resource["metadata"].(object), "name", "top50")
	return resource
}

// parse returns the schema of a document.
func parse(t *testing.T, document object) schema.Schema {
	t.Helper()
	resource := complete(object{})
	for _, name := range []string{"apiVersion", "kind"} {
		resource[name] = document[name]
	}
	resource["metadata"] = object{"name": document["metadata"].(object)["name"]}
	set, findings := schema.Mangle([]any{resource}, []any{document})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return set[0]
}

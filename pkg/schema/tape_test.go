package schema_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

const (
	minLength = "observer_schema_list_min_length"
	maxLength = "observer_schema_list_max_length"
)

// sample is a schema, two manifests and a live object, which have about its shape.
type sample struct {
	document, first, second, live object
	schema                        schema.Schema
}

// objects gives a copy of the arguments of all functions.
func (s sample) objects() []object {
	return []object{runtime.DeepCopyJSON(s.first), runtime.DeepCopyJSON(s.second), runtime.DeepCopyJSON(s.live)}
}

// tape is a row of choices; when it has run out, the first is taken each time,
// which makes everything small. So a fuzzer can drive it.
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
	document := complete(object{"spec": t.node(0), "status": t.node(2)})
	first := complete(object{"spec": t.value(document["spec"]), "status": t.value(document["status"])})
	second := complete(t.edit(runtime.DeepCopyJSON(first)).(object))
	live := complete(object{"spec": t.value(document["spec"])})
	if t.below(3) > 0 { // most live objects are nearly what they should be
		live = complete(t.edit(runtime.DeepCopyJSON(first)).(object))
	}
	return sample{document: document, first: first, second: second, live: live}
}

// names have what paths and pointers must quote.
func names() []string { return []string{"a", "b/~c", "d.e[0]", "namespace"} }

// node gives the schema of a value.
func (t *tape) node(depth int) any {
	kind := t.below(5)
	switch {
	case depth == 4 || kind == 0:
		return nil
	case kind < 3:
		fields := object{}
		for _, name := range names() {
			if t.below(3) > 0 {
				fields[name] = t.node(depth + 1)
			}
		}
		return fields
	}
	items := make([]any, t.below(3))
	for i := range items {
		items[i] = t.node(depth + 1)
	}
	least, most := t.below(4), 0
	if t.below(2) > 0 {
		most = max(least, len(items)) + t.below(2)
	}
	return append(items, object{minLength: int64(least), maxLength: int64(most)})
}

// value gives a value which mostly has the shape of the schema.
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
		for _, name := range names() {
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
		return items
	}
	return t.anything(1)
}

func (t *tape) anything(depth int) any {
	switch kind := t.below(8); {
	case kind == 0 || depth == 0 && kind > 5:
		return nil
	case kind < 3:
		return []any{"x", "y"}[t.below(2)]
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
		for _, name := range append(names(), "spec", "status", "extra") {
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
		switch t.below(6) {
		case 1:
			return append(value, t.anything(1))
		case 2:
			return value[:len(value)/2]
		}
	}
	return value
}

func (t *tape) editOne(value any) any {
	if t.below(8) == 1 {
		return t.anything(1)
	}
	return t.edit(value)
}

// complete gives a resource the identity that all tests share, where it says none.
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

// parse gives a schema from its document.
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

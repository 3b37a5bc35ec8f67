package schema

import (
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// The keys of the control dictionary: the last element of every list of a schema,
// and of its counterpart in a projection.
const (
	MinLengthKey     = "observer_schema_list_min_length"
	MaxLengthKey     = "observer_schema_list_max_length"
	CurrentLengthKey = "observer_schema_list_current_length"
	// ListKeyKey is an addition of this project: the merge keys of the list.
	ListKeyKey = "observer_schema_list_key"
)

// Schema is the observer schema of one resource. Only [Mangle] and [Default]
// make it, so that it is valid wherever it is met. It is immutable: what
// refines it ([Schema.Align], [Schema.Accept], [Schema.ByValue]) gives another.
type Schema struct {
	id   manifest.ID
	root object
}

// node is one of leaf, constant, object and list: a walker is one switch.
type node any

type (
	// leaf is a value that is observed as a whole.
	leaf struct {
		// namespace marks metadata.namespace, which a cluster-scoped object
		// does not have, whatever its manifest says (specification 1.6.6).
		namespace bool
		// byValue: see [Schema.ByValue].
		byValue bool
		forms   forms
	}
	// constant is a part of the identity: known, and never different.
	constant struct{ value string }
	// object looks into the named fields, which are sorted by name.
	object struct{ fields []field }
	// list looks into its first elements.
	list struct {
		items []node
		// min and max bound the length of the whole list; max 0 is no bound.
		min, max int
		// keys tell which element is which; without them, the index does.
		keys keys
		// stated is how the user has written the keys; nil: they are the API's,
		// and no part of the document.
		stated any
		// given is how many elements the manifest has, as far as that matters:
		// what is desired beyond them was learned.
		given int
		// forms are those of the length.
		forms forms
	}
)

type field struct {
	name string
	node node
}

// ID is the identity of the resource that the schema belongs to. Its namespace
// is always empty: a schema does not say it.
func (s Schema) ID() manifest.ID { return s.id }

// Document is the schema in the form in which users write it.
func (s Schema) Document() map[string]any {
	document, _ := written(s.root).(map[string]any)
	return document
}

func written(n node) any {
	switch n := n.(type) {
	case constant:
		return n.value
	case object:
		fields := make(map[string]any, len(n.fields))
		for _, f := range n.fields {
			fields[f.name] = written(f.node)
		}
		return fields
	case list:
		items := make([]any, 0, len(n.items)+1)
		for _, item := range n.items {
			items = append(items, written(item))
		}
		return append(items, writtenControl(n))
	}
	return nil
}

func writtenControl(n list) map[string]any {
	control := map[string]any{MinLengthKey: int64(n.min), MaxLengthKey: int64(n.max)}
	if n.stated != nil {
		control[ListKeyKey] = clone(n.stated)
	}
	return control
}

// Observe gives the schema with one more observed field. A field that lies in
// one which is observed as a whole already, or in a list, is left as it is.
func (s Schema) Observe(path ...string) Schema {
	if root, ok := observe(s.root, path).(object); ok {
		s.root = root
	}
	return s
}

func observe(n node, path []string) node {
	parent, ok := n.(object)
	if !ok || len(path) == 0 {
		return n
	}
	at, found := parent.find(path[0])
	if found {
		fields := slices.Clone(parent.fields)
		fields[at].node = observe(fields[at].node, path[1:])
		return object{fields: fields}
	}
	added := node(leaf{})
	if len(path) > 1 {
		added = observe(object{}, path[1:])
	}
	return object{fields: slices.Insert(slices.Clone(parent.fields), at, field{path[0], added})}
}

// find gives where the field is, or would be.
func (o object) find(name string) (int, bool) {
	return slices.BinarySearchFunc(o.fields, name, func(f field, name string) int {
		return strings.Compare(f.name, name)
	})
}

// Unobserve gives the schema without a field and all below it. Of the identity
// nothing can be left out.
func (s Schema) Unobserve(path ...string) Schema {
	if root, ok := unobserve(s.root, path).(object); ok {
		s.root = root
	}
	return s
}

func unobserve(n node, path []string) node {
	parent, ok := n.(object)
	if !ok || len(path) == 0 {
		return n
	}
	at, found := parent.find(path[0])
	if !found {
		return n
	}
	fields := slices.Clone(parent.fields)
	if _, identity := fields[at].node.(constant); len(path) == 1 && !identity {
		return object{fields: slices.Delete(fields, at, at+1)}
	}
	fields[at].node = unobserve(fields[at].node, path[1:])
	return object{fields: fields}
}

// identity makes the root of a schema: the identity as constants, around the
// given other fields of the root and of metadata.
func identity(id manifest.ID, root, metadata []field) Schema {
	id.Namespace = ""
	metadata = append(metadata, field{"name", constant{id.Name}})
	root = append(root,
		field{"apiVersion", constant{id.APIVersion}},
		field{"kind", constant{id.Kind}},
		field{"metadata", newObject(metadata)},
	)
	return Schema{id: id, root: newObject(root)}
}

func newObject(fields []field) object {
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return object{fields: fields}
}

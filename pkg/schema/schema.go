package schema

import (
	"slices"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Schema is the observer schema of one resource. Only [Mangle] and [Default] make a Schema, so
// every Schema is valid. It is immutable: methods that refine it ([Schema.Align], [Schema.Accept],
// [Schema.ByValue]) return another one.
type Schema struct {
	id   manifest.ID
	root object
}

// ID is the identity of the schema's resource. Its namespace is always empty, because a schema does
// not set it.
func (s Schema) ID() manifest.ID { return s.id }

// Document returns the schema in the form in which users write it.
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

// Observe returns the schema with one more observed field. It changes nothing for a
// field in a list, or in a field that is observed as a whole.
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
		return parent.with(fields)
	}
	added := node(leaf{})
	if len(path) > 1 {
		added = observe(object{}, path[1:])
	}
	return parent.with(slices.Insert(slices.Clone(parent.fields), at, field{path[0], added}))
}

// Unobserve returns the schema without a field and everything below it. The identity cannot be
// removed.
func (s Schema) Unobserve(path ...string) Schema { return s.UnobserveAt(FieldPath(path...)) }

// UnobserveAt is [Schema.Unobserve] of a field that is below elements of lists.
func (s Schema) UnobserveAt(path Path) Schema {
	if root, ok := unobserve(s.root, path).(object); ok {
		s.root = root
	}
	return s
}

func unobserve(n node, path Path) node {
	if len(path) == 0 {
		return n
	}
	if items, ok := n.(list); ok && path[0].Index >= 0 && path[0].Index < len(items.items) {
		items.items = slices.Clone(items.items)
		items.items[path[0].Index] = unobserve(items.items[path[0].Index], path[1:])
		return items
	}
	parent, ok := n.(object)
	if !ok || path[0].Index != notAnIndex {
		return n
	}
	at, found := parent.find(path[0].Field)
	if !found {
		return n
	}
	fields := slices.Clone(parent.fields)
	if _, identity := fields[at].node.(constant); len(path) == 1 && !identity {
		return parent.with(slices.Delete(fields, at, at+1))
	}
	fields[at].node = unobserve(fields[at].node, path[1:])
	return parent.with(fields)
}

// LetGrow returns the schema with a list that may get longer, if the path leads through no list.
func (s Schema) LetGrow(path ...string) Schema {
	if root, ok := letGrow(s.root, path).(object); ok {
		s.root = root
	}
	return s
}

func letGrow(n node, path []string) node {
	if items, ok := n.(list); ok && len(path) == 0 {
		items.max, items.isDefault = 0, false
		return items
	}
	parent, ok := n.(object)
	if !ok || len(path) == 0 {
		return n
	}
	at, found := parent.find(path[0])
	if !found {
		return n
	}
	fields := slices.Clone(parent.fields)
	fields[at].node = letGrow(fields[at].node, path[1:])
	return parent.with(fields)
}

// identity makes the root of a schema. The identity consists of constants, beside the other fields
// of the root and of metadata.
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

// Observes reports whether the field at the path, which leads through no list, is observed. That
// includes a field that is observed in part, or as a part of a field that is observed as a whole.
func (s Schema) Observes(path ...string) bool {
	n := node(s.root)
	for _, name := range path {
		if _, whole := n.(leaf); whole {
			return true
		}
		parent, ok := n.(object)
		if !ok {
			return false
		}
		at, found := parent.find(name)
		if !found {
			return false
		}
		n = parent.fields[at].node
	}
	return true
}

package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// parser turns the user's document into the closed tree. A tree whose report has errors is never
// used.
type parser struct {
	*report

	// isUnknown reports that the API's type of the resource is unknown, so that a field of a key may have a default.
	isUnknown bool
}

// parseIdentity reads the identity of a schema's resource.
func (p parser) parseIdentity(document map[string]any) (manifest.ID, bool) {
	before := p.errors
	id := manifest.ID{
		APIVersion: p.identifier(document["apiVersion"], "apiVersion"),
		Kind:       p.identifier(document["kind"], "kind"),
	}
	p.enter(".metadata")
	switch metadata := document["metadata"].(type) {
	case nil:
		p.add("metadata-missing", "metadata dictionary is not defined")
	case map[string]any:
		id.Name = p.identifier(metadata["name"], "name")
	default:
		p.add("metadata-not-object", "metadata must be a dictionary")
	}
	p.leave()
	return id, p.errors == before
}

func (p parser) identifier(value any, name string) string {
	switch value := value.(type) {
	case nil:
		where := ""
		if name == "name" {
			where = " in the metadata dictionary"
		}
		p.addAt("."+name, name+"-missing", "%s is not defined%s", name, where)
	case string:
		return value
	default:
		p.addAt("."+name, "identity-not-string", "%s must be a string", name)
	}
	return ""
}

// described is a value of the manifest, nil if there is none, and its type, nil if it is unknown.
type described struct {
	value any
	kind  Type
}

func (d described) field(name string) described {
	fields, _ := d.value.(map[string]any)
	return described{fields[name], fieldType(d.kind, name)}
}

func (d described) element(i int) described {
	elements, _ := d.value.([]any)
	return described{at(elements, i), elementType(d.kind)}
}

// parse reads the tree of a schema together with the manifest's resource, which may be absent.
func (p parser) parse(id manifest.ID, document map[string]any, resource described) Schema {
	metadata, _ := document["metadata"].(map[string]any)
	root := p.fields(document, resource, "apiVersion", "kind", "metadata")
	p.enter(".metadata")
	observed := p.fields(metadata, resource.field("metadata"), "name")
	p.leave()
	for i := range observed {
		if _, ok := observed[i].node.(leaf); ok && observed[i].name == "namespace" {
			observed[i].node = leaf{namespace: true}
		}
	}
	return identity(id, root, observed)
}

// fields parses the values of an object in the order of their names, except the named ones.
func (p parser) fields(values map[string]any, described described, but ...string) []field {
	fields := make([]field, 0, len(values))
	for name := range values {
		if !slices.Contains(but, name) {
			fields = append(fields, field{name: name})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for i, f := range fields {
		p.enter("." + f.name)
		fields[i].node = p.value(f.name, values[f.name], described.field(f.name))
		p.leave()
	}
	return fields
}

// value parses the schema of a field. described is its value in the manifest.
func (p parser) value(name string, value any, described described) node {
	n, ok := p.node(value, described)
	if !ok {
		way := "an observed value is written as null"
		if n := len(p.path); p.path[n-1] == ".namespace" && p.path[n-2] == ".metadata" {
			way = "set it to null to observe it"
		}
		p.add("value-not-null", "Value of '%s' is not null: %s", name, way)
	}
	return n
}

// element parses the schema of an element of a list.
func (p parser) element(value any, described described) node {
	n, ok := p.node(value, described)
	if !ok {
		p.add("element-not-null", "Element of a list is not null: an observed element is written as null")
	}
	return n
}

// node parses the valid values of an observer schema: null, objects and lists.
func (p parser) node(value any, described described) (node, bool) {
	switch value := value.(type) {
	case nil:
		return leaf{}, true
	case map[string]any:
		if p.tooDeep() {
			return leaf{}, true
		}
		return p.object(value, described), true
	case []any:
		if p.tooDeep() {
			return leaf{}, true
		}
		return p.list(value, described), true
	}
	return leaf{}, false
}

// tooDeep refuses documents that manifest.Decode would not have accepted.
func (p parser) tooDeep() bool {
	if len(p.path) <= manifest.MaxDepth {
		return false
	}
	p.add("too-deep", "nested deeper than %d", manifest.MaxDepth)
	return true
}

func (p parser) object(value map[string]any, described described) node {
	if _, ok := described.value.(map[string]any); !ok && described.value != nil {
		p.add("shape-mismatch", "The schema expects an object, the manifest has %s", shape(described.value))
	}
	return object{fields: p.fields(value, described)}
}

func (p parser) list(value []any, described described) node {
	elements, ok := described.value.([]any)
	if !ok && described.value != nil {
		p.add("shape-mismatch", "The schema expects a list, the manifest has %s", shape(described.value))
	}
	items, control := readControl(p.report, value)
	parsed := list{min: control.min, max: control.max, keys: control.keys, stated: control.stated, given: len(elements)}
	for i, item := range items {
		p.enter("[" + strconv.Itoa(i) + "]")
		parsed.items = append(parsed.items, p.element(item, described.element(i)))
		p.leave()
	}
	if control.maxOK && control.max != 0 && control.max < len(items) {
		p.add("max-below-observed", "%s is inferior to the number of observed elements (%d)", MaxLengthKey, len(items))
	}
	if control.minOK && control.min < len(elements) {
		p.warn("min-below-manifest", "%s is below the manifest's %d elements, so they may be removed", MinLengthKey, len(elements))
	}
	stated := parsed.keys
	if described.kind != nil {
		stated = stated.of(described.kind)
	}
	checkKeys(p.report, stated, elements, p.isUnknown)
	return parsed
}

func shape(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return "a plain value"
}

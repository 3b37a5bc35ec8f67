package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// parser turns what the user wrote into the closed tree and collects all
// mistakes on the way. A tree with findings is never used.
type parser struct{ findings Findings }

// parseIdentity reads what a schema is for.
func (p *parser) parseIdentity(document map[string]any, path string) (manifest.ID, bool) {
	before := len(p.findings)
	id := manifest.ID{
		APIVersion: p.identifier(document["apiVersion"], "apiVersion", path+".apiVersion"),
		Kind:       p.identifier(document["kind"], "kind", path+".kind"),
	}
	switch metadata := document["metadata"].(type) {
	case nil:
		p.findings.add("metadata-missing", path+".metadata", "metadata dictionary is not defined")
	case map[string]any:
		id.Name = p.identifier(metadata["name"], "name", path+".metadata.name")
	default:
		p.findings.add("metadata-not-object", path+".metadata", "metadata must be a dictionary")
	}
	return id, len(p.findings) == before
}

func (p *parser) identifier(value any, name, path string) string {
	switch value := value.(type) {
	case nil:
		where := ""
		if name == "name" {
			where = " in the metadata dictionary"
		}
		p.findings.add(name+"-missing", path, "%s is not defined%s", name, where)
	case string:
		return value
	default:
		p.findings.add("identity-not-string", path, "%s must be a string", name)
	}
	return ""
}

// parse reads the tree of a schema beside the manifest's resource, which is nil
// if there is none.
func (p *parser) parse(id manifest.ID, document, resource map[string]any, path string) Schema {
	metadata, _ := document["metadata"].(map[string]any)
	described, _ := resource["metadata"].(map[string]any)
	root := p.fields(document, resource, path, "apiVersion", "kind", "metadata")
	observed := p.fields(metadata, described, path+".metadata", "name")
	for i := range observed {
		if _, ok := observed[i].node.(leaf); ok && observed[i].name == "namespace" {
			observed[i].node = leaf{namespace: true}
		}
	}
	return identity(id, root, observed)
}

// fields parses the values of an object but those named, in the order of their names.
func (p *parser) fields(values, described map[string]any, path string, but ...string) []field {
	fields := make([]field, 0, len(values))
	for name := range values {
		if !slices.Contains(but, name) {
			fields = append(fields, field{name: name})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for i, f := range fields {
		fields[i].node = p.value(f.name, values[f.name], described[f.name], path+"."+f.name)
	}
	return fields
}

// value parses the schema of a field. described is what the manifest has there.
func (p *parser) value(name string, value, described any, path string) node {
	n, ok := p.node(value, described, path)
	if !ok {
		way := "an observed value is written as null"
		if strings.HasSuffix(path, ".metadata.namespace") {
			way = "set it to null to observe it"
		}
		p.findings.add("value-not-null", path, "Value of '%s' is not null: %s", name, way)
	}
	return n
}

// element parses the schema of an element of a list.
func (p *parser) element(value, described any, path string) node {
	n, ok := p.node(value, described, path)
	if !ok {
		p.findings.add("element-not-null", path, "Element of a list is not null: an observed element is written as null")
	}
	return n
}

// node parses what an observer schema may hold; a plain value is no such thing.
func (p *parser) node(value, described any, path string) (node, bool) {
	switch value := value.(type) {
	case nil:
		return leaf{}, true
	case map[string]any:
		return p.object(value, described, path), true
	case []any:
		return p.list(value, described, path), true
	}
	return leaf{}, false
}

func (p *parser) object(value map[string]any, described any, path string) node {
	fields, ok := described.(map[string]any)
	if !ok && described != nil {
		p.findings.add("shape-mismatch", path, "The schema expects an object, the manifest has %s", shape(described))
	}
	return object{fields: p.fields(value, fields, path)}
}

func (p *parser) list(value []any, described any, path string) node {
	elements, ok := described.([]any)
	if !ok && described != nil {
		p.findings.add("shape-mismatch", path, "The schema expects a list, the manifest has %s", shape(described))
	}
	items, bounds := p.control(value, path)
	parsed := list{min: bounds.min, max: bounds.max}
	for i, item := range items {
		parsed.items = append(parsed.items, p.element(item, at(elements, i), fmt.Sprintf("%s[%d]", path, i)))
	}
	if bounds.ok && bounds.max != 0 && bounds.max < len(items) {
		p.findings.add("max-below-observed", path, "%s is inferior to the number of observed elements (%d)", maxLengthKey, len(items))
	}
	if bounds.ok && bounds.min < len(elements) {
		p.findings.warn("min-below-manifest", path,
			"%s is below the manifest's %d elements, so they may be removed", minLengthKey, len(elements))
	}
	return parsed
}

// lengths are the bounds of a control dictionary; ok if both were understood.
type lengths struct {
	min, max int
	ok       bool
}

// control splits a list into its elements and its control dictionary.
func (p *parser) control(value []any, path string) ([]any, lengths) {
	var control map[string]any
	if len(value) > 0 {
		control, _ = value[len(value)-1].(map[string]any)
	}
	minimum, hasMin := control[minLengthKey]
	maximum, hasMax := control[maxLengthKey]
	if !hasMin && !hasMax {
		p.findings.add("control-missing", path,
			"Special list control dictionary not found: end the list with {%s: 0, %s: 0}", minLengthKey, maxLengthKey)
		return value, lengths{}
	}
	items := value[:len(value)-1]
	if !hasMin || !hasMax {
		p.findings.add("control-malformed", path,
			"Special list control dictionary malformed: it needs both %s and %s", minLengthKey, maxLengthKey)
		return items, lengths{}
	}
	return items, p.bounds(control, minimum, maximum, path)
}

func (p *parser) bounds(control map[string]any, minimum, maximum any, path string) lengths {
	for _, name := range sortedNames(control) {
		if name != minLengthKey && name != maxLengthKey {
			p.findings.add("control-extra-key", path, "Unknown key '%s' in the list control dictionary", name)
		}
	}
	least, leastOK := p.bound("min", minLengthKey, minimum, path)
	most, mostOK := p.bound("max", maxLengthKey, maximum, path)
	ok := leastOK && mostOK
	if ok && most != 0 && most < least {
		p.findings.add("max-below-min", path, "%s is inferior to %s", maxLengthKey, minLengthKey)
	}
	return lengths{min: least, max: most, ok: ok}
}

func (p *parser) bound(code, name string, value any, path string) (int, bool) {
	number, ok := value.(int64)
	switch {
	case !ok:
		p.findings.add(code+"-not-integer", path, "%s should be an integer", name)
	case number < 0:
		p.findings.add(code+"-negative", path, "Invalid value for %s: %d is negative", name, number)
	default:
		return int(number), true
	}
	return 0, false
}

func sortedNames(values map[string]any) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
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

package tosca

import (
	"maps"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// What the parts of a template may have, as messages list it.
const (
	sections = "tosca_definitions_version, tosca_default_namespace, metadata, template_name, template_author, template_version, " +
		"description, dsl_definitions, repositories, imports, artifact_types, data_types, capability_types, " +
		"interface_types, relationship_types, relationship_templates, node_types, group_types, policy_types, topology_template"
	topologySections = "description, inputs, node_templates, relationship_templates, outputs, groups, substitution_mappings, policies"
	nodeSections     = "type, description, metadata, derived_from, directives, properties, attributes, requirements, " +
		"capabilities, interfaces, artifacts, node_filter, copy"
	inputTypes = "string, integer, float, number, boolean, list, map, range, timestamp, version, " +
		"scalar-unit.size, scalar-unit.frequency, scalar-unit.time, scalar-unit.bitrate, PortDef, PortSpec"
)

// versions returns the supported versions of the language.
func versions() []string { return []string{"tosca_simple_yaml_1_0", "tosca_simple_yaml_1_2"} }

func (r *reader) checkTemplate(template *place) {
	version := template.field("tosca_definitions_version")
	switch {
	case version == nil:
		r.add(template.errorf("missing required field tosca_definitions_version: write %s", strings.Join(versions(), " or ")))
	case !slices.Contains(versions(), version.text()):
		r.add(version.errorf("the version is not supported: write %s", strings.Join(versions(), " or ")))
	case r.bare && version.text() == versions()[0]:
		r.add(version.errorf("an archive of %s needs the file %s, with a line %q: add it, or write %s",
			versions()[0], metadata, entryKey+": "+template.file, versions()[1]))
	}
	r.checkKeys(template, sections, "a template")
}

// readTopology reads the inputs and node templates.
func (r *reader) readTopology(template *place) {
	topology := r.filled(template, "topology_template", "TOSCA does not contain any topology template: write topology_template with node_templates")
	if topology == nil {
		return
	}
	r.checkKeys(topology, topologySections, "a topology template")
	for name, input := range r.mapping(topology, "inputs").fields() {
		r.inputs[name] = r.input(input)
	}
	r.readNodes(topology)
}

// input returns the value of an input, which is its default or null.
func (r *reader) input(input *place) *place {
	unset := input.with(nil)
	if !r.wants(input, "a mapping with type and default") {
		return unset
	}
	kind := input.field("type").text()
	if !slices.Contains(strings.Split(inputTypes, ", "), kind) {
		r.add(input.errorf("an input has a type: one of %s", inputTypes))
		return unset
	}
	value := input.field("default")
	if value.isNull() {
		return unset
	}
	r.add(checkKind(value, kind))
	if whole, ok := value.Value.(int64); ok && kind == "float" { // 1.0 is read as 1
		return value.with(float64(whole))
	}
	return value.asLiteral()
}

func (r *reader) readNodes(topology *place) {
	templates := r.filled(topology, "node_templates", "TOSCA does not contain any node template: write at least one under node_templates")
	switch {
	case templates == nil:
		return
	case len(templates.Fields) > manifest.MaxResources:
		r.add(templates.errorf("%d node templates; the maximum is %d", len(templates.Fields), manifest.MaxResources))
		return
	}
	properties := r.definition()
	for name, at := range templates.fields() {
		r.readNode(name, at, properties)
	}
}

func (r *reader) readNode(name string, at *place, properties definition) {
	if !r.wants(at, "a mapping with type and properties") {
		return
	}
	r.checkKeys(at, nodeSections, "a node template")
	if at.field("type").text() != kubernetesObject {
		r.add(at.errorf("the type of a node template is %s: no other is supported, nor are types derived from it", kubernetesObject))
		return
	}
	n := &node{at: at, properties: map[string]*place{}}
	r.assign(n, properties)
	r.nodes[name] = n
	r.ordered = append(r.ordered, n)
}

// assign sets the properties of a node: those in its template, then the defaults.
func (r *reader) assign(n *node, properties definition) {
	for name, value := range r.mapping(n.at, "properties").fields() {
		if p, ok := properties[name]; ok {
			n.properties[name] = r.typed(name, value, p.kind)
		} else {
			r.add(value.errorf("unknown property: the type has %s", properties.names()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := properties[name]
		switch {
		case n.properties[name] != nil:
		case p.fallback != nil:
			n.properties[name] = p.fallback
		case p.required:
			r.add(n.at.errorf("missing required property %s", printable(name)))
		}
	}
}

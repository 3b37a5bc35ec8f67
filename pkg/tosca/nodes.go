package tosca

import (
	"maps"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// node is a node template.
type node struct {
	at         *place
	properties map[string]*place
}

// nodeSections are what a node template may have.
func nodeSections() []string {
	return []string{
		"type", "description", "metadata", "derived_from", "directives", "properties", "attributes", "requirements",
		"capabilities", "interfaces", "artifacts", "node_filter", "copy",
	}
}

func (t *translation) readNodes(topology *place) {
	templates := topology.field("node_templates")
	switch {
	case templates.isEmpty():
		t.add(topology.errorf("TOSCA does not contain any node template: write at least one under node_templates"))
		return
	case !templates.isMapping():
		t.add(templates.errorf("%s, and a mapping is wanted", kindOf(templates.Value)))
		return
	case len(templates.Fields) > manifest.MaxResources:
		t.add(templates.errorf("%d node templates, and at most %d are possible", len(templates.Fields), manifest.MaxResources))
		return
	}
	properties := t.definition()
	for _, field := range templates.Fields {
		t.readNode(field.Name, templates.child(field), properties)
	}
}

func (t *translation) readNode(name string, at *place, properties definition) {
	if !at.isMapping() {
		t.add(at.errorf("%s, and a mapping with type and properties is wanted", kindOf(at.Value)))
		return
	}
	t.checkKeys(at, nodeSections(), "a node template")
	if kind := at.field("type"); kind.text() != kubernetesObject {
		t.add(at.errorf("the type of a node template is %s: no other is supported, nor are types derived from it", kubernetesObject))
		return
	}
	n := &node{at: at, properties: map[string]*place{}}
	t.assign(n, t.mapping(at, "properties"), properties)
	t.nodes[name] = n
	t.ordered = append(t.ordered, n)
}

// assign gives the node its properties: those that are given, then the defaults.
func (t *translation) assign(n *node, given *place, properties definition) {
	if given != nil {
		for _, field := range given.Fields {
			value := given.child(field)
			p, ok := properties[field.Name]
			if !ok {
				t.add(value.errorf("unknown property: the type has %s", properties.names()))
				continue
			}
			n.properties[field.Name] = t.typed(field.Name, value, p.kind)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := properties[name]
		switch {
		case n.properties[name] != nil:
		case p.fallback != nil:
			n.properties[name] = p.fallback
		case p.required:
			t.add(n.at.errorf("missing required property %s", printable(name)))
		}
	}
}

package tosca

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// kubernetesObject is the only type of nodes that is supported.
const kubernetesObject = "tosca.nodes.indigo.KubernetesObject"

// definition is what the type of all nodes says of their properties.
type definition map[string]property

// property is one that a node may have.
type property struct {
	kind     string // text, or a name of TOSCA's
	required bool
	// fallback is the value that it has otherwise, or nil.
	fallback *place
}

// builtIn is the definition of the type that nobody defines.
func builtIn() definition { return definition{"spec": {kind: "string", required: true}} }

// definition gives the properties of the type, with those that it inherits.
func (t *translation) definition() definition {
	if t.types[kubernetesObject] == nil {
		return builtIn()
	}
	properties := definition{}
	seen := map[string]bool{}
	for name := kubernetesObject; name != ""; {
		at := t.types[name]
		if at == nil || seen[name] {
			break
		}
		seen[name] = true
		t.inherit(properties, at)
		name = t.parent(at, seen)
	}
	return properties
}

// inherit adds the properties of a type that are not overridden.
func (t *translation) inherit(properties definition, of *place) {
	if !of.isMapping() {
		t.add(of.errorf("%s, and a mapping is wanted", kindOf(of.Value)))
		return
	}
	declared := t.mapping(of, "properties")
	if declared == nil {
		return
	}
	for _, field := range declared.Fields {
		if _, overridden := properties[field.Name]; !overridden {
			properties[field.Name] = t.property(field.Name, declared.child(field))
		}
	}
}

// parent gives the type that a type is derived from, unless it is one of TOSCA's
// own, which have no properties here.
func (t *translation) parent(of *place, seen map[string]bool) string {
	derived := of.field("derived_from")
	if derived == nil || derived.Value == nil {
		return ""
	}
	name := derived.text()
	switch {
	case seen[name]:
		t.add(derived.errorf("the type %s is derived from itself", printable(name)))
	case t.types[name] == nil && !strings.HasPrefix(name, "tosca."):
		t.add(derived.errorf("%s is not a valid type: define it under node_types or data_types", quote(name)))
	}
	return name
}

func (t *translation) property(name string, declared *place) property {
	if !declared.isMapping() {
		t.add(declared.errorf("%s, and a mapping with a type is wanted", kindOf(declared.Value)))
		return property{}
	}
	p := property{kind: declared.field("type").text(), required: true}
	if p.kind == "" {
		t.add(declared.errorf("missing required field type, a text"))
	}
	if required := declared.field("required"); required != nil && required.Value != nil {
		is, ok := required.Value.(bool)
		if p.required = is; !ok {
			t.add(required.errorf("%s, and true or false is wanted", kindOf(required.Value)))
		}
	}
	if fallback := declared.field("default"); fallback != nil && fallback.Value != nil {
		p.fallback = t.typed(name, fallback, p.kind)
	}
	return p
}

// typed gives the value of a property, which is of its kind unless a function gives
// it. What is no text becomes one where that is the kind, but for the mapping that is
// the resource itself.
func (t *translation) typed(property string, value *place, kind string) *place {
	function, _ := functionAt(value)
	switch {
	case function != "":
		return value
	case kind != "string":
		t.add(checkKind(value, kind))
		return value
	case value.Value == nil, property == "spec" && value.isMapping():
		return value
	}
	return value.with(textOf(value.Tree))
}

// names gives the names of the properties.
func (d definition) names() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d)) {
		names = append(names, printable(name))
	}
	return shorten(strings.Join(names, ", "), 200)
}

// checkKind is simple: what a list holds, and constraints, are not looked at, and
// values of other kinds than those of YAML may be anything.
func checkKind(value *place, kind string) error {
	if fits(value.Value, kind) {
		return nil
	}
	return value.errorf("%s, and the type is %s", kindOf(value.Value), kind)
}

// fits tells if a value is of a kind. What stands in quotes may be a number or a
// boolean.
func fits(value any, kind string) bool {
	text, isText := value.(string)
	switch kind {
	case "string":
		return isText
	case "integer":
		_, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return err == nil || kindOf(value) == "an integer"
	case "number":
		_, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		return err == nil || fits(value, "float")
	case "float": // 1.0 is read as 1
		return kindOf(value) == "a float" || kindOf(value) == "an integer"
	case "boolean":
		return kindOf(value) == "a boolean" || strings.EqualFold(text, "true") || strings.EqualFold(text, "false")
	case "list":
		return kindOf(value) == "a list"
	case "map":
		return kindOf(value) == "a mapping"
	}
	return true
}

package tosca

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// kubernetesObject is the only supported type of nodes.
const kubernetesObject = "tosca.nodes.indigo.KubernetesObject"

// definition is the properties of the type that all nodes have.
type definition map[string]property

// property is a property that a node may have.
type property struct {
	kind     string // a name of the language: string, integer
	required bool
	// fallback is the default, or nil.
	fallback *place
}

// definition returns the properties of the type, including the inherited ones.
func (r *reader) definition() definition {
	if r.types[kubernetesObject] == nil {
		return definition{"spec": {kind: "string", required: true}}
	}
	properties := definition{}
	seen := map[string]bool{}
	for name := kubernetesObject; name != "" && r.types[name] != nil && !seen[name]; {
		seen[name] = true
		of := r.types[name]
		r.inherit(properties, of)
		name = r.parent(of, seen)
	}
	return properties
}

// inherit adds the properties of a type that are not overridden.
func (r *reader) inherit(properties definition, of *place) {
	if !r.wants(of, "a mapping") {
		return
	}
	for name, declared := range r.mapping(of, "properties").fields() {
		if _, overridden := properties[name]; !overridden {
			properties[name] = r.property(name, declared)
		}
	}
}

// parent returns the type that a type is derived from, or "". The types of TOSCA itself
// have no properties here.
func (r *reader) parent(of *place, seen map[string]bool) string {
	derived := of.field("derived_from")
	if derived.isNull() {
		return ""
	}
	name := derived.text()
	switch {
	case seen[name]:
		r.add(derived.errorf("the type %s is derived from itself", printable(name)))
	case r.types[name] == nil && !strings.HasPrefix(name, "tosca."):
		r.add(derived.errorf("%s is not a valid type: define it under node_types or data_types", quote(name)))
	}
	return name
}

func (r *reader) property(name string, declared *place) property {
	if !r.wants(declared, "a mapping with a type") {
		return property{}
	}
	p := property{kind: declared.field("type").text(), required: true}
	if p.kind == "" {
		r.add(declared.errorf("missing required field type, a text"))
	}
	if required := declared.field("required"); !required.isNull() {
		is, ok := required.Value.(bool)
		if p.required = is; !ok {
			r.add(required.unexpected("true or false"))
		}
	}
	if fallback := declared.field("default"); !fallback.isNull() {
		p.fallback = r.typed(name, fallback, p.kind)
	}
	return p
}

// typed returns the value of a property, and checks its kind unless a function returns
// the value. Where the kind is a text, other values become texts. The exception is the
// mapping that is the resource itself.
func (r *reader) typed(property string, value *place, kind string) *place {
	function, _ := functionAt(value)
	switch {
	case function != "":
		return value
	case kind != "string":
		r.add(checkKind(value, kind))
		return value
	case value.Value == nil, property == "spec" && value.isMapping():
		return value
	}
	return value.with(textOf(value.Tree))
}

// names lists the properties for a message.
func (d definition) names() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d)) {
		names = append(names, printable(name))
	}
	return shorten(strings.Join(names, ", "), 200)
}

// checkKind checks neither the items of a list nor constraints. A value of a kind that YAML lacks
// may be anything.
func checkKind(value *place, kind string) error {
	if fits(value.Value, kind) {
		return nil
	}
	return value.errorf("%s, and the type is %s", kindOf(value.Value), kind)
}

// fits reports whether a value is of a kind. A text may be a number or a boolean.
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

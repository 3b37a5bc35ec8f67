package tosca

import (
	"slices"
	"strings"
)

// inputTypes are the types that an input may have.
func inputTypes() []string {
	return []string{
		"string", "integer", "float", "number", "boolean", "list", "map", "range", "timestamp", "version",
		"scalar-unit.size", "scalar-unit.frequency", "scalar-unit.time", "scalar-unit.bitrate", "PortDef", "PortSpec",
	}
}

// readInputs reads the inputs with their defaults: nobody gives them other values.
func (t *translation) readInputs(inputs *place) {
	if inputs == nil {
		return
	}
	for _, field := range inputs.Fields {
		input := inputs.child(field)
		t.inputs[field.Name] = t.input(input)
	}
}

// input gives the value of an input, which is null without a default.
func (t *translation) input(input *place) *place {
	unset := input.with(nil)
	if !input.isMapping() {
		t.add(input.errorf("%s, and a mapping with type and default is wanted", kindOf(input.Value)))
		return unset
	}
	kind := input.field("type").text()
	if !slices.Contains(inputTypes(), kind) {
		t.add(input.errorf("an input has a type: one of %s", strings.Join(inputTypes(), ", ")))
		return unset
	}
	value := input.field("default")
	if value == nil || value.Value == nil {
		return unset
	}
	t.add(checkKind(value, kind))
	if whole, ok := value.Value.(int64); ok && kind == "float" { // 1.0 is read as 1
		return value.with(float64(whole))
	}
	return value.asLiteral()
}

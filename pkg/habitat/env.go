package habitat

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// env gives the environment variables as the user wrote them, without the nulls.
func (o object) env() []any {
	var variables []any
	for i, item := range o.list("env", maxEnv) {
		variable, ok := o.object(o.at("env").Index(i), item)
		if !ok {
			o.nullItem(variable.path, item)
			continue
		}
		variables = append(variables, variable.variable())
	}
	return variables
}

// nullItem tells of an element that is none. Other values have been told already.
func (r *reading) nullItem(path *field.Path, item any) {
	if item == nil {
		r.wrongType(path, item, "an object")
	}
}

// variable reads one as core/v1 has it.
func (o object) variable() map[string]any {
	read := map[string]any{}
	o.copyText(read, "name", variableName())
	value, has := o.text("value")
	if has {
		read["value"] = value
	}
	if source, ok := o.child("valueFrom"); ok {
		if value != "" {
			o.add(field.Forbidden(source.path, "there is a value already: leave one of both out"))
		}
		read["valueFrom"] = source.source()
	}
	o.close()
	return read
}

// source reads where the value of a variable comes from.
func (o object) source() map[string]any {
	read := map[string]any{}
	o.reference(read, "fieldRef", []string{"fieldPath"}, []string{"apiVersion"}, "")
	o.reference(read, "resourceFieldRef", []string{"resource"}, []string{"containerName"}, "divisor")
	o.reference(read, "configMapKeyRef", []string{"name", "key"}, nil, "optional")
	o.reference(read, "secretKeyRef", []string{"name", "key"}, nil, "optional")
	o.reference(read, "fileKeyRef", []string{"volumeName", "path", "key"}, nil, "optional")
	if len(read) != 1 {
		o.invalid(o.path, fmt.Sprintf("it has %d sources, and has to have one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef", len(read)))
	}
	o.close()
	return read
}

// reference reads a source: texts that must be there, texts that may, and one field
// of another kind.
func (o object) reference(into map[string]any, name string, required, optional []string, other string) {
	source, ok := o.child(name)
	if !ok {
		return
	}
	read := map[string]any{}
	for _, text := range required {
		source.copyText(read, text, anyText())
	}
	for _, text := range optional {
		if value, ok := source.text(text); ok {
			read[text] = value
		}
	}
	switch other {
	case "optional":
		source.copyBoolean(read, other)
	case "divisor":
		source.copyQuantity(read, other)
	}
	source.close()
	into[name] = read
}

func (o object) copyText(into map[string]any, name string, of format) {
	if text := o.required(name, of); text != "" {
		into[name] = text
	}
}

func (o object) copyBoolean(into map[string]any, name string) {
	switch value := o.take(name).(type) {
	case nil:
	case bool:
		into[name] = value
	default:
		o.wrongType(o.at(name), value, "a boolean")
	}
}

func (o object) copyQuantity(into map[string]any, name string) {
	switch value := o.take(name).(type) {
	case nil:
		return
	case string:
		if _, ok := quantityOf(value); !ok {
			o.invalid(o.at(name), "it has to be a quantity, as 1Mi")
		}
	case int64:
	default:
		o.wrongType(o.at(name), value, "a quantity")
	}
	into[name] = o.fields[name]
}

// variableName is what the API server takes for one.
func variableName() format {
	return format{"the name of the variable, of printable ASCII characters without '='", maxVariable, func(text string) bool {
		return len(validation.IsRelaxedEnvVarName(text)) == 0
	}}
}

func anyText() format {
	return format{"a text", 0, func(string) bool { return true }}
}

package habitat

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// environment returns the environment variables as the user wrote them, without nulls.
func environment(spec object) []any {
	var variables []any
	for _, variable := range spec.objects("env", maxEnv) {
		variables = append(variables, readVariable(variable))
	}
	return variables
}

// readVariable returns a variable of core/v1.
func readVariable(variable object) map[string]any {
	read := map[string]any{}
	if name := variable.required("name", variableText); name != "" {
		read["name"] = name
	}
	value, has := variable.text("value")
	if has {
		read["value"] = value
	}
	if source, ok := variable.child("valueFrom"); ok {
		if value != "" {
			variable.add(field.Forbidden(source.path, "there is already a value: leave one of the two out"))
		}
		read["valueFrom"] = readSource(source)
	}
	variable.close()
	return read
}

// readSource returns the source of a variable's value.
func readSource(source object) map[string]any {
	read := map[string]any{}
	readReference(read, source, "fieldRef", []string{"fieldPath"}, "apiVersion", "")
	readReference(read, source, "resourceFieldRef", []string{"resource"}, "containerName", "divisor")
	readReference(read, source, "configMapKeyRef", []string{"name", "key"}, "", "optional")
	readReference(read, source, "secretKeyRef", []string{"name", "key"}, "", "optional")
	readReference(read, source, "fileKeyRef", []string{"volumeName", "path", "key"}, "", "optional")
	if len(read) != 1 {
		source.invalid(source.path, fmt.Sprintf("it has %d sources, and has to have one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef", len(read)))
	}
	source.close()
	return read
}

// readReference reads a field of a source: its required texts, an optional text, and a
// field of another kind.
func readReference(into map[string]any, source object, name string, required []string, optional, other string) {
	reference, ok := source.child(name)
	if !ok {
		return
	}
	read := map[string]any{}
	for _, name := range required {
		if text := reference.required(name, anyText); text != "" {
			read[name] = text
		}
	}
	if optional != "" {
		if text, ok := reference.text(optional); ok {
			read[optional] = text
		}
	}
	switch other {
	case "optional":
		value := reference.take(other)
		if _, ok := value.(bool); !ok && value != nil {
			reference.wrongType(reference.at(other), value, "a boolean")
		}
	case "divisor":
		checkQuantity(reference, other)
	}
	if value := reference.fields[other]; other != "" && value != nil {
		read[other] = value
	}
	reference.close()
	into[name] = read
}

func checkQuantity(reference object, name string) {
	switch value := reference.take(name).(type) {
	case nil, int64:
	case string:
		if _, ok := quantityOf(value); !ok {
			reference.invalid(reference.at(name), "it has to be a quantity, as 1Mi")
		}
	default:
		reference.wrongType(reference.at(name), value, "a quantity")
	}
}

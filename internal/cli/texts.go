package cli

import (
	"fmt"
	"strconv"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// legible returns a projection without the nulls and lengths that are for programs. For a
// list it adds how many elements are not observed.
func legible(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name, field := range value {
			fields[name] = legible(field)
		}
		return fields
	case []any:
		elements, length := schema.Elements(value)
		items := make([]any, 0, len(value))
		for _, element := range elements {
			if element != nil {
				items = append(items, legible(element))
			}
		}
		if more := length - len(items); more > 0 {
			items = append(items, "("+strconv.Itoa(more)+" more, not observed)")
		}
		return items
	}
	return value
}

// textOf returns an object as YAML, and nothing for one that is absent.
func textOf(object any) (string, error) {
	if object == nil {
		return "", nil
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("write an object as YAML: %w", err)
	}
	return string(text), nil
}

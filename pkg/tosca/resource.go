package tosca

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// resources evaluates all node templates.
func (t *translation) resources() ([]any, error) {
	e := newEvaluator(t)
	var resources []any
	for _, n := range t.ordered {
		resource, err := e.resource(n)
		t.add(err)
		resources = append(resources, resource)
		if !e.exhausted {
			t.add(e.checkReferences(n))
		}
		if e.exhausted {
			break
		}
	}
	if err := t.err(); err != nil {
		return nil, err
	}
	return resources, nil
}

// resource gives what the spec of a node template says.
func (e *evaluator) resource(n *node) (map[string]any, error) {
	spec := n.properties["spec"]
	if spec == nil {
		return nil, n.at.errorf(emptySpec)
	}
	at, err := e.value(n, spec)
	if err != nil {
		return nil, err
	}
	resource, err := e.mapping(spec, at.Value)
	if err != nil {
		return nil, err
	}
	if _, err := manifest.Identify(resource); err != nil {
		return nil, spec.errorf("%s", oneLine(err))
	}
	size, err := sizeOf(resource)
	if err != nil {
		return nil, spec.errorf("%s", oneLine(err))
	}
	return resource, e.spend(spec, &e.become, size)
}

const emptySpec = "TOSCA node property `spec` must not be empty."

// mapping gives the one that a value is, or that a text has.
func (e *evaluator) mapping(spec *place, value any) (map[string]any, error) {
	if text, ok := value.(string); ok {
		if err := e.spend(spec, &e.read, len(text)); err != nil {
			return nil, err
		}
		tree, err := manifest.DecodeTree([]byte(text))
		if err != nil {
			return nil, spec.errorf("the text is no resource: %s", inText(undecoded([]byte(text), err)))
		}
		value = tree.Value
	}
	switch value := value.(type) {
	case nil:
		return nil, spec.errorf(emptySpec)
	case map[string]any:
		copied, _ := clone(value).(map[string]any)
		return copied, nil
	}
	return nil, spec.errorf("%s, and a resource is wanted: a mapping with apiVersion, kind and metadata.name", kindOf(value))
}

// inText tells that a line is one of the text, and not of the file.
func inText(message string) string {
	if strings.Contains(message, "line ") {
		message += ", counted from where the text begins"
	}
	return message
}

// sizeOf gives the length of a value as JSON.
func sizeOf(value any) (int, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return text.Len(), err
}

// checkReferences looks at the properties that nobody has asked for.
func (e *evaluator) checkReferences(n *node) error {
	for _, name := range slices.Sorted(maps.Keys(n.properties)) {
		property := n.properties[name]
		if name == "spec" || !isReference(property) {
			continue
		}
		if _, _, err := e.follow(&asking{node: n, property: property}, property); err != nil {
			return err
		}
	}
	return nil
}

// clone copies a value: two node templates may have the same one.
func clone(value any) any {
	switch value := value.(type) {
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, field := range value {
			copied[key] = clone(field)
		}
		return copied
	case []any:
		copied := make([]any, 0, len(value))
		for _, item := range value {
			copied = append(copied, clone(item))
		}
		return copied
	}
	return value
}

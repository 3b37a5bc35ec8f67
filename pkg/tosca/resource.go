package tosca

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// evaluate returns the resources of the node templates, or all of their mistakes.
func evaluate(r *reader) ([]any, error) {
	const bytes = MaxBytes
	e := &evaluator{inputs: r.inputs, nodes: r.nodes, steps: maxSteps, made: bytes, decoded: bytes, resources: bytes}
	var found mistakes
	var resources []any
	for _, n := range r.ordered {
		resource, err := e.resource(n)
		found.add(err)
		resources = append(resources, resource)
		if !e.exhausted {
			found.add(e.checkReferences(n))
		}
		if e.exhausted {
			break
		}
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	return resources, nil
}

// resource returns the resource in the spec of a node template.
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
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(resource); err != nil {
		return nil, spec.errorf("%s", oneLine(err))
	}
	return resource, e.spend(spec, &e.resources, text.Len())
}

const emptySpec = "TOSCA node property `spec` must not be empty."

// mapping returns a value that is a mapping, or the mapping that a text contains.
func (e *evaluator) mapping(spec *place, value any) (map[string]any, error) {
	if text, ok := value.(string); ok {
		if err := e.spend(spec, &e.decoded, len(text)); err != nil {
			return nil, err
		}
		tree, err := manifest.DecodeTree([]byte(text))
		if err != nil {
			message := undecoded([]byte(text), err)
			if strings.Contains(message, "line ") {
				message += ", counted from where the text begins"
			}
			return nil, spec.errorf("the text is no resource: %s", message)
		}
		value = tree.Value
	}
	switch value := value.(type) {
	case nil:
		return nil, spec.errorf(emptySpec)
	case map[string]any:
		return runtime.DeepCopyJSON(value), nil // two node templates may have the same value
	}
	return nil, spec.errorf("%s, and a resource is wanted: a mapping with apiVersion, kind and metadata.name", kindOf(value))
}

// checkReferences checks the properties to which no other property refers.
func (e *evaluator) checkReferences(n *node) error {
	for _, name := range slices.Sorted(maps.Keys(n.properties)) {
		property := n.properties[name]
		if function, _ := functionAt(property); name == "spec" || function != getInput && function != getProperty {
			continue
		}
		if _, _, err := e.follow(&asking{node: n, property: property}, property); err != nil {
			return err
		}
	}
	return nil
}

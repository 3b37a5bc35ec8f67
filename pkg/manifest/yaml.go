package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	yamltree "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func decodeYAML(document []byte) (any, error) {
	tree, err := parse(document)
	if err != nil {
		return nil, err
	}
	if err := check(tree, 0); err != nil {
		return nil, err
	}
	if value, ok := decodePlain(document, tree); ok {
		return value, nil
	}
	return decodeYAML11(document, tree)
}

// decodeYAML11 reads a document that YAML 1.2 may read in another way.
func decodeYAML11(document []byte, tree *yamltree.Node) (any, error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, withoutValues(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	if fieldsOf(value) != pairsOf(tree) {
		return nil, errors.New(`parse YAML: two keys of an object are the same text, as are 1 and "1"`)
	}
	return value, nil
}

// parse returns the tree of the only YAML document in a text.
func parse(document []byte) (*yamltree.Node, error) {
	decoder := yamltree.NewDecoder(bytes.NewReader(document))
	var tree, more yamltree.Node
	err := decoder.Decode(&tree)
	if errors.Is(err, io.EOF) {
		return &tree, nil
	}
	if err != nil {
		return nil, withoutValues(err)
	}
	// The strict decoder reads the first document only: a second one would be lost.
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New(`a further document must begin with a line "---"`)
	}
	return &tree, nil
}

// check refuses constructions that expand beyond their text, and nesting too deep for recursion.
func check(node *yamltree.Node, depth int) error {
	switch {
	case node.Anchor != "" || node.Kind == yamltree.AliasNode:
		return fmt.Errorf("line %d: anchors and aliases are not supported: write the value out", node.Line)
	case node.Tag == "!!merge":
		return fmt.Errorf("line %d: merge keys are not supported: write the fields out", node.Line)
	case depth > MaxDepth && node.Kind != yamltree.ScalarNode: // the document is the node at depth 0
		return fmt.Errorf("line %d: nested deeper than %d: write it flatter", node.Line, MaxDepth)
	case node.Kind == yamltree.ScalarNode && node.Style&quoted == 0 && losesDigits(node.Value):
		return fmt.Errorf("line %d: %w", node.Line, errDigits)
	}
	for _, child := range node.Content {
		if err := check(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// withoutValues returns the errors of the YAML decoders that contain only lines and keys. It
// replaces errors that repeat a value.
func withoutValues(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "unknown anchor"), strings.Contains(text, "expected alphabetic or numeric character"): // *.example.org
		return errors.New("parse YAML: anchors and aliases are not supported: quote a text that begins with *")
	case strings.Contains(text, "unsupported map key"), strings.Contains(text, "invalid map key"):
		return errors.New("parse YAML: a key is neither a text nor a number")
	case strings.Contains(text, "cannot decode"), strings.Contains(text, "cannot unmarshal"):
		return errors.New("parse YAML: a value is not what its tag says")
	}
	return fmt.Errorf("parse YAML: %w", err)
}

// pairsOf and fieldsOf count keys. YAML has keys that are not strings. If two of them become the
// same text, one would be lost, and not always the same.
func pairsOf(node *yamltree.Node) int {
	pairs := 0
	if node.Kind == yamltree.MappingNode {
		pairs = len(node.Content) / 2
	}
	for _, child := range node.Content {
		pairs += pairsOf(child)
	}
	return pairs
}

func fieldsOf(value any) int {
	fields := 0
	switch value := value.(type) {
	case map[string]any:
		fields = len(value)
		for _, field := range value {
			fields += fieldsOf(field)
		}
	case []any:
		for _, item := range value {
			fields += fieldsOf(item)
		}
	}
	return fields
}

package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	yamltree "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// MaxDepth is how deep objects and lists may be nested. Every walker of this
// project is recursive and trusts that nothing deeper reaches it.
const MaxDepth = 64

// Decode reads resources from YAML or JSON: any number of documents, each of
// which is one resource or a list of resources. Empty documents are left out.
// Whether each is an object, and which fields it has, is for the caller to see.
//
// The YAML tree is looked at before it is expanded: anchors, aliases and merge
// keys are refused, because a text of 400 KB can expand to gigabytes, and so is
// nesting below [MaxDepth]. Duplicate keys are errors. Scalars are read as
// kubectl reads them (YAML 1.1).
func Decode(text []byte) ([]any, error) {
	documents, err := split(text)
	if err != nil {
		return nil, err
	}
	var resources []any
	for i, document := range documents {
		decoded, err := decodeDocument(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		resources = append(resources, decoded...)
	}
	return resources, nil
}

// split cuts the text at the lines "---", as kubectl does, and checks the tree
// of each piece, so that the decoder below sees only what was checked.
func split(text []byte) ([][]byte, error) {
	var documents [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("split YAML: %w", err)
		}
		if err := checkDocument(document); err != nil {
			return nil, fmt.Errorf("document %d: %w", len(documents)+1, err)
		}
		documents = append(documents, document)
	}
}

func checkDocument(document []byte) error {
	decoder := yamltree.NewDecoder(bytes.NewReader(document))
	var tree, more yamltree.Node
	err := decoder.Decode(&tree)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("parse YAML: %w", err)
	}
	// The strict decoder reads the first document only: a second one would be lost.
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New(`a further document must begin with a line "---"`)
	}
	return check(&tree, 0)
}

// check refuses what costs more than its text and what the walkers could not bear.
func check(node *yamltree.Node, depth int) error {
	switch {
	case node.Anchor != "" || node.Kind == yamltree.AliasNode:
		return fmt.Errorf("line %d: anchors and aliases are not supported: write the value out", node.Line)
	case node.Tag == "!!merge":
		return fmt.Errorf("line %d: merge keys are not supported: write the fields out", node.Line)
	case depth > MaxDepth+1: // the document node counts one
		return fmt.Errorf("line %d: nested deeper than %d", node.Line, MaxDepth)
	}
	for _, child := range node.Content {
		if err := check(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func decodeDocument(document []byte) ([]any, error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("parse YAML: %w", err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	switch value := value.(type) {
	case nil:
		return nil, nil
	case []any:
		return value, nil
	default:
		return []any{value}, nil
	}
}

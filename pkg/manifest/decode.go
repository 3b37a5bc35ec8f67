package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	strictjson "sigs.k8s.io/json"
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
//
// Errors tell lines and keys, never values: the text may be that of a Secret.
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

// split cuts the text at the lines "---", as kubectl does.
func split(text []byte) ([][]byte, error) {
	var documents [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil { // the reader's own words repeat the line
			return nil, fmt.Errorf(`document %d: a line that begins with "---" may hold nothing more than a comment`, len(documents)+1)
		}
		if bytes.HasPrefix(document, []byte("---")) { // the reader leaves the first one in
			_, document, _ = bytes.Cut(document, []byte("\n"))
		}
		documents = append(documents, document)
	}
}

func decodeDocument(document []byte) ([]any, error) {
	decode := decodeYAML
	if json.Valid(document) {
		decode = decodeJSON // YAML lacks some of its escapes
	}
	value, err := decode(document)
	if err != nil {
		return nil, err
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

func decodeJSON(document []byte) (any, error) {
	var value any
	strict, err := strictjson.UnmarshalStrict(document, &value, strictjson.DisallowDuplicateFields)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	if TooDeep(value) {
		return nil, fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	return value, nil
}

// TooDeep tells if more than MaxDepth objects and lists lie within each other.
func TooDeep(value any) bool { return deeperThan(MaxDepth, value) }

func deeperThan(depth int, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			if depth > 0 && deeperThan(depth-1, field) {
				return true
			}
		}
		return depth == 0
	case []any:
		for _, item := range value {
			if depth > 0 && deeperThan(depth-1, item) {
				return true
			}
		}
		return depth == 0
	}
	return false
}

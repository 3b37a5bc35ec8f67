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

// Limits of a text.
const (
	// MaxBytes is how long it may be.
	MaxBytes = 256 << 10
	// MaxResources is how many resources it may hold.
	MaxResources = 100
	// MaxDepth is how deep objects and lists may be nested. Every walker of this
	// project is recursive and trusts that nothing deeper reaches it.
	MaxDepth = 64
)

// Decode reads resources from YAML or JSON: any number of documents, each of
// which is one resource or a list of resources. Empty documents are left out.
// Whether each is an object, and which fields it has, is for the caller to see.
//
// The YAML tree is looked at before it is expanded: anchors, aliases and merge
// keys are refused, because a text of 400 KB can expand to gigabytes, and so is
// nesting below [MaxDepth]. Duplicate keys are errors, and so are integers that
// no int64 holds: they would lose digits. Scalars are read as kubectl reads them
// (YAML 1.1). What lies beyond [MaxBytes] or [MaxResources] is not looked at.
//
// Errors tell lines and keys, never values: the text may be that of a Secret.
func Decode(text []byte) ([]any, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the text has %d bytes, and at most %d are possible: split it", len(text), MaxBytes)
	}
	var resources []any
	// A line that fills the buffer exactly, and ends the text, is lost to the reader.
	reader := utilyaml.NewYAMLReader(bufio.NewReaderSize(bytes.NewReader(text), len(text)+1))
	documents := 0 // with anything in them
	for n := 1; ; n++ {
		document, err := next(reader)
		if errors.Is(err, io.EOF) {
			return resources, nil
		}
		if err == nil && isBlank(document) {
			continue
		}
		var decoded []any
		if err == nil {
			decoded, err = decodeDocument(document)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		resources = append(resources, decoded...)
		if documents++; max(documents, len(resources)) > MaxResources {
			return nil, fmt.Errorf("document %d: more than %d resources are not possible: split the text", n, MaxResources)
		}
	}
}

// next gives the text up to a line "---", as kubectl does.
func next(reader *utilyaml.YAMLReader) ([]byte, error) {
	document, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, err
	}
	if err != nil { // the reader's own words repeat the line
		return nil, errors.New(`a line that begins with "---" may hold nothing more than a comment`)
	}
	// The reader leaves the first one in.
	if line, rest, _ := bytes.Cut(document, []byte("\n")); isSeparator(line) {
		return rest, nil
	}
	return document, nil
}

// isSeparator tells if a line is nothing but the beginning of a document to
// YAML, for which "---#" is a text.
func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	text := bytes.Trim(rest, " \t\r")
	return ok && !goesOn(line) && (len(text) == 0 || text[0] == '#' && rest[0] != '#')
}

// goesOn tells if a line is several ones to YAML, which has further line breaks:
// there may be anything behind a comment.
func goesOn(line []byte) bool {
	return bytes.ContainsAny(bytes.TrimSuffix(line, []byte("\r")), "\r\u0085\u2028\u2029")
}

// isBlank tells if there is nothing in a document but comments. To leave tens
// of thousands of them to the parser would cost seconds.
func isBlank(document []byte) bool {
	for line := range bytes.Lines(document) {
		// Not all that is space to Go is to YAML.
		if line = bytes.Trim(line, " \t\r\n"); len(line) > 0 && (line[0] != '#' || goesOn(line)) {
			return false
		}
	}
	return true
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
	if err := checkNumbers(document); err != nil {
		return nil, err
	}
	var value any
	strict, err := strictjson.UnmarshalStrict(document, &value, strictjson.DisallowDuplicateFields)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	if TooDeep(value) {
		return nil, fmt.Errorf("nested deeper than %d: write it flatter", MaxDepth)
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

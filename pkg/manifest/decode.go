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

// Decode reads resources from YAML or JSON: any number of documents, each of which is one resource or
// a list of resources. It leaves out empty documents. The caller checks whether each resource is an
// object, and its fields.
//
// Decode checks the YAML tree before it is expanded. It refuses anchors, aliases and merge keys,
// because a text of 400 KB can expand to gigabytes, and nesting below [MaxDepth]. Duplicate keys are
// errors, and so are integers beyond an int64, which would lose digits. Scalars are read as kubectl
// reads them (YAML 1.1). Decode stops at [MaxBytes], at [MaxResources] and at [MaxValues].
//
// Errors contain lines and keys, never values: the text may be that of a Secret.
func Decode(text []byte) ([]any, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the text has %d bytes; the maximum is %d: split it", len(text), MaxBytes)
	}
	var resources []any
	// A line that fills the buffer exactly, and ends the text, is lost to the reader.
	reader := utilyaml.NewYAMLReader(bufio.NewReaderSize(bytes.NewReader(text), len(text)+1))
	documents, values := 0, 0 // documents with anything in them
	for n := 1; ; n++ {
		document, err := next(reader, text)
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
		for _, resource := range decoded {
			values += CountValues(resource)
		}
		if values > MaxValues {
			return nil, fmt.Errorf("document %d: %w", n, errValues)
		}
		resources = append(resources, decoded...)
		if documents++; max(documents, len(resources)) > MaxResources {
			return nil, fmt.Errorf("document %d: more than %d resources are not possible: split the text", n, MaxResources)
		}
	}
}

// next returns the text up to a line "---", as kubectl does.
func next(reader *utilyaml.YAMLReader, text []byte) ([]byte, error) {
	document, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, err
	}
	if err != nil { // the reader's own words repeat the line
		return nil, errors.New(inLine(lineOfSeparator(text)) + `a line that begins with "---" may hold nothing more than a comment`)
	}
	// The reader leaves the first one in.
	if line, rest, _ := bytes.Cut(document, []byte("\n")); isSeparator(line) {
		return rest, nil
	}
	return document, nil
}

// lineOfSeparator returns the line of the first separator with a text, counted in its document.
func lineOfSeparator(text []byte) int {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		rest, begins := bytes.CutPrefix(line, []byte("---"))
		rest = bytes.TrimSpace(rest)
		switch {
		case begins && len(rest) > 0 && rest[0] != '#':
			return n
		case begins:
			n = 0
		}
	}
	return 0
}

// isSeparator reports whether a line only begins a document. To YAML, "---#" is a text.
func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	text := bytes.Trim(rest, " \t\r")
	return ok && !goesOn(line) && (len(text) == 0 || text[0] == '#' && rest[0] != '#')
}

// goesOn reports whether YAML, which has further line breaks, reads several lines: anything may follow
// a comment.
func goesOn(line []byte) bool {
	return bytes.ContainsAny(bytes.TrimSuffix(line, []byte("\r")), "\r\u0085\u2028\u2029")
}

// isBlank reports whether a document has nothing but comments. The parser would need seconds for tens
// of thousands of them.
func isBlank(document []byte) bool {
	for line := range bytes.Lines(document) {
		// bytes.TrimSpace removes more than what YAML regards as space.
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
	if CountValues(value) > MaxValues {
		return nil, errValues
	}
	return value, nil
}

// checkNumbers refuses integers of JSON that would lose digits.
func checkNumbers(document []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if number, ok := token.(json.Number); ok && losesDigits(number.String()) {
			return fmt.Errorf("line %d: %w", 1+bytes.Count(document[:decoder.InputOffset()], []byte("\n")), errDigits)
		}
	}
}

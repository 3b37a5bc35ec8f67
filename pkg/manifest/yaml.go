package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
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
	if nodesOf(tree)-pairsOf(tree) > MaxValues+1 { // without the keys, and with the document itself
		return nil, errValues
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
		return nil, refusal(err, func(problem string) int { return lineOf(problem, tree) })
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	if fieldsOf(value) != pairsOf(tree) {
		return nil, refusal(errSameKeys, func(problem string) int { return lineOf(problem, tree) })
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
		return nil, refusal(err, func(string) int { return firstLine(document, err) })
	}
	// The strict decoder reads the first document only: a second one would be lost.
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		line := inLine(more.Line)
		if err != nil {
			line = namedLine.FindString(err.Error())
		}
		return nil, errors.New(line + `a further document must begin with a line "---"`)
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

var (
	errSameKeys = errors.New(`two keys of an object are the same text, as are 1 and "1"`)
	// namedLine is the line that an error of a YAML decoder names.
	namedLine = regexp.MustCompile(`line \d+: `)
	// notUTF8 matches the errors of bytes that are no text in UTF-8.
	notUTF8 = regexp.MustCompile(`^yaml: (unexpected low|expected low|invalid .*U|incomplete .*U)`)
)

// refusal returns the error of a YAML decoder with its line, and with keys, but without values. locate returns
// the line of an error that names none, or 0.
func refusal(err error, locate func(problem string) int) error {
	text := err.Error()
	line := namedLine.FindString(text)
	if line == "" {
		line = inLine(locate(text))
		rest, isOfParser := strings.CutPrefix(text, "yaml: ")
		if text = line + rest; isOfParser {
			text = "yaml: " + text
		}
	}
	switch {
	case strings.Contains(text, "unknown anchor"), strings.Contains(text, "expected alphabetic or numeric character"): // *.example.org
		text = line + "anchors and aliases are not supported: quote a text that begins with *"
	case strings.Contains(text, "unsupported map key"), strings.Contains(text, "invalid map key"):
		text = line + "a key is neither a text nor a number"
	case strings.Contains(text, "cannot decode"), strings.Contains(text, "cannot unmarshal"):
		text = line + "a value is not what its tag says"
	case strings.HasPrefix(err.Error(), "yaml: control characters"):
		text = line + "control characters are not allowed: write them as escapes in double quotes; if the file is in UTF-16, as PowerShell writes it with >, save it as UTF-8"
	case isNotUTF8(err):
		text = line + "the text is not UTF-8: save the file as UTF-8"
	}
	return errors.New("parse YAML: " + text)
}

func isNotUTF8(err error) bool { return notUTF8.MatchString(err.Error()) }

func inLine(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", line)
}

// firstLine returns the first line with which a document produces an error of [parse], which reads one line
// after the other.
func firstLine(document []byte, err error) int {
	lines := bytes.SplitAfter(document, []byte("\n"))
	return 1 + sort.Search(len(lines)-1, func(i int) bool {
		var tree yamltree.Node
		found := yamltree.Unmarshal(bytes.Join(lines[:i+1], nil), &tree)
		return found != nil && (found.Error() == err.Error() || isNotUTF8(found))
	})
}

// lineOf returns the line of the first node that may have a problem of [decodeYAML11], or 0.
func lineOf(problem string, node *yamltree.Node) int {
	keys, others := map[string]bool{}, 0 // others are keys that are no texts to every parser
	for i, child := range node.Content {
		isKey := node.Kind == yamltree.MappingNode && i%2 == 0
		var is bool
		switch {
		case problem == errSameKeys.Error() && isKey:
			if key, _ := plainScalar(child); key != child.Value {
				others++
			}
			is = keys[child.Value] || others > 1
			keys[child.Value] = true
		case strings.Contains(problem, "map key"):
			is = isKey && (child.Kind != yamltree.ScalarNode || child.ShortTag() == "!!null")
		case strings.Contains(problem, "unsupported value"): // .inf
			is = child.ShortTag() == "!!float" && strings.ContainsAny(child.Value, "iInN")
		case problem != errSameKeys.Error():
			is = child.Style&yamltree.TaggedStyle != 0
		}
		if is {
			return child.Line
		}
		if line := lineOf(problem, child); line > 0 {
			return line
		}
	}
	return 0
}

// nodesOf counts the nodes of a tree, including its own.
func nodesOf(node *yamltree.Node) int {
	nodes := 1
	for _, child := range node.Content {
		nodes += nodesOf(child)
	}
	return nodes
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

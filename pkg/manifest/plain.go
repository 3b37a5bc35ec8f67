package manifest

import (
	"bytes"
	"strconv"
	"strings"

	yamltree "go.yaml.in/yaml/v3"
)

// quoted are the styles of scalars that are always texts.
const quoted = yamltree.SingleQuotedStyle | yamltree.DoubleQuotedStyle | yamltree.LiteralStyle | yamltree.FoldedStyle

// decodePlain returns the value of a document whose tree has passed check, if no second parser is
// necessary. The tree is one of YAML 1.2, but kubectl reads scalars as YAML 1.1 does. The parser of
// YAML 1.1 reads documents that the two may read differently, and those with errors in YAML 1.1.
func decodePlain(document []byte, tree *yamltree.Node) (value any, ok bool) {
	// The tree does not show every tag.
	if len(tree.Content) == 0 || bytes.ContainsRune(document, '!') {
		return nil, false
	}
	return plainValue(tree.Content[0])
}

func plainValue(node *yamltree.Node) (value any, ok bool) {
	switch node.Kind {
	case yamltree.MappingNode:
		return plainObject(node)
	case yamltree.SequenceNode:
		return plainList(node)
	case yamltree.ScalarNode:
		return plainScalar(node)
	}
	return nil, false
}

func plainObject(node *yamltree.Node) (value any, ok bool) {
	object := make(map[string]any, len(node.Content)/2)
	for i := 0; i < len(node.Content); i += 2 {
		key, ok := plainScalar(node.Content[i])
		name, isText := key.(string)
		if _, twice := object[name]; !ok || !isText || twice {
			return nil, false
		}
		if object[name], ok = plainValue(node.Content[i+1]); !ok {
			return nil, false
		}
	}
	return object, true
}

func plainList(node *yamltree.Node) (value any, ok bool) {
	list := make([]any, len(node.Content))
	for i, item := range node.Content {
		if list[i], ok = plainValue(item); !ok {
			return nil, false
		}
	}
	return list, true
}

func plainScalar(node *yamltree.Node) (value any, ok bool) {
	text := node.Value
	switch tag := node.ShortTag(); {
	case tag == "!!str":
		return text, node.Style&quoted != 0 || isText(text)
	case tag == "!!null":
		return nil, text == "" || text == "null"
	case tag == "!!bool":
		return text == "true", text == "true" || text == "false"
	case tag == "!!int" && isInteger(text):
		integer, err := strconv.ParseInt(text, 10, 64)
		return integer, err == nil
	}
	return nil, false
}

// words are texts in YAML 1.2, and booleans in YAML 1.1.
var words = map[string]bool{
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"n": true, "N": true, "no": true, "No": true, "NO": true, "off": true, "Off": true, "OFF": true,
}

// isText reports whether a scalar without quotes, which is a text in YAML 1.2, is certainly one in
// YAML 1.1: it begins with a letter or a slash, or like a flag or a quantity.
func isText(text string) bool {
	if text == "" || strings.Contains(text, "\n") {
		return false
	}
	switch first := text[0]; {
	case isLetter(first):
		return !words[text]
	case first == '/':
		return true
	case first == '-':
		return len(text) > 1 && (isLetter(text[1]) || text[1] == '-')
	case '1' <= first && first <= '9':
		suffix := strings.TrimLeft(text, "0123456789")
		return suffix != "" && isLetter(suffix[0])
	}
	return false
}

func isLetter(b byte) bool { return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' }

// isInteger reports whether a scalar is an integer in its usual decimal form.
func isInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return text == "0" || digits != "" && '1' <= digits[0] && digits[0] <= '9' && strings.Trim(digits, "0123456789") == ""
}

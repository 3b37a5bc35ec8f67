package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	yamltree "go.yaml.in/yaml/v3"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// maxAliases bounds the bytes by which aliases may enlarge a text.
const maxAliases = 256 << 10

// errUnreadable is the error of a text that is not one document of YAML.
var errUnreadable = errors.New("not one document of YAML")

// expand returns a document without anchors, aliases and merge keys: their values are written out.
func expand(document []byte) ([]byte, error) {
	tree, err := nodeOf(document)
	if err != nil {
		return nil, err
	}
	whole, err := newExpander(len(document)+maxAliases).node(tree, 0)
	if err != nil {
		return nil, err
	}
	return textOf(whole)
}

// nodeOf parses a text with one document.
func nodeOf(document []byte) (*yamltree.Node, error) {
	decoder := yamltree.NewDecoder(bytes.NewReader(document))
	var tree, more yamltree.Node
	if err := decoder.Decode(&tree); err != nil {
		return nil, errUnreadable // its own error may repeat values
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errUnreadable // a second document would be lost
	}
	return &tree, nil
}

func textOf(node *yamltree.Node) ([]byte, error) {
	var text bytes.Buffer
	encoder := yamltree.NewEncoder(&text)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(node), encoder.Close())
	return text.Bytes(), err
}

// expander copies nodes. A text of a few hundred bytes can expand to gigabytes, so it stops at
// a number of bytes.
type expander struct{ limit, left int }

func newExpander(limit int) *expander { return &expander{limit, limit} }

func (e *expander) node(node *yamltree.Node, depth int) (*yamltree.Node, error) {
	if node.Kind == yamltree.AliasNode {
		node = node.Alias
	}
	e.left -= len(node.Value) + 1
	switch {
	case e.left < 0:
		return nil, fmt.Errorf("line %d: the aliases expand to more than %d bytes: write fewer of them", node.Line, e.limit)
	case depth > manifest.MaxDepth+1: // the document is a node, too; an alias may be inside its own anchor
		return nil, fmt.Errorf("line %d: nested deeper than %d: write it flatter", node.Line, manifest.MaxDepth)
	case node.Kind == yamltree.MappingNode:
		return e.mapping(node, depth)
	}
	whole := *node
	whole.Anchor, whole.Content = "", nil
	for _, child := range node.Content {
		copied, err := e.node(child, depth+1)
		if err != nil {
			return nil, err
		}
		whole.Content = append(whole.Content, copied)
	}
	return &whole, nil
}

// mapping copies an object. Its own fields have precedence over those of its merge keys.
func (e *expander) mapping(node *yamltree.Node, depth int) (*yamltree.Node, error) {
	whole := *node
	whole.Anchor, whole.Content = "", nil
	has := map[string]bool{}
	var merges []*yamltree.Node
	for i := 1; i < len(node.Content); i += 2 {
		key, value := node.Content[i-1], node.Content[i]
		if key.Tag == "!!merge" {
			merges = append(merges, value)
			continue
		}
		has[key.Value] = true
		if err := e.field(&whole, key, value, depth); err != nil {
			return nil, err
		}
	}
	if err := e.merge(&whole, merges, has, depth); err != nil {
		return nil, err
	}
	return &whole, nil
}

// merge appends the fields of merge keys that an object does not have yet. The earlier ones have
// precedence.
func (e *expander) merge(whole *yamltree.Node, from []*yamltree.Node, has map[string]bool, depth int) error {
	for _, each := range from {
		if each.Kind == yamltree.AliasNode {
			each = each.Alias
		}
		inner, err := e.node(each, depth+1) // a merge key may be inside its own anchor
		if err != nil {
			return err
		}
		switch inner.Kind {
		case yamltree.SequenceNode:
			err = e.merge(whole, inner.Content, has, depth+1)
		case yamltree.MappingNode:
			for i := 1; i < len(inner.Content); i += 2 {
				if key := inner.Content[i-1]; !has[key.Value] {
					has[key.Value] = true
					whole.Content = append(whole.Content, key, inner.Content[i])
				}
			}
		default:
			err = fmt.Errorf("line %d: a merge key needs an object: write the fields out", each.Line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *expander) field(whole, key, value *yamltree.Node, depth int) error {
	for _, each := range []*yamltree.Node{key, value} {
		copied, err := e.node(each, depth+1)
		if err != nil {
			return err
		}
		whole.Content = append(whole.Content, copied)
	}
	return nil
}

package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	yamltree "go.yaml.in/yaml/v3"
)

// Tree is a value with the lines and the order of the fields in its text.
type Tree struct {
	// Value is the value as [Decode] returns it.
	Value any
	// Line is its first line.
	Line int
	// Fields are the fields of an object, in the order of the text. Fields whose keys YAML reads as
	// another value (yes, 0x10) come last.
	Fields []Field
	// Items are the items of a list.
	Items []*Tree
}

// Field is a field of an object.
type Field struct {
	*Tree

	Name string
	// KeyLine is the line of the name.
	KeyLine int
}

// DecodeTree reads the only document of a text, YAML or JSON, and is as strict as [Decode]. The value
// of an empty text is nil.
func DecodeTree(text []byte) (*Tree, error) {
	switch {
	case len(text) > MaxBytes:
		return nil, fmt.Errorf("the text has %d bytes; the maximum is %d: split it", len(text), MaxBytes)
	case isBlank(text):
		return &Tree{Line: 1}, nil
	case json.Valid(text):
		return jsonTree(text)
	}
	value, err := decodeYAML(text)
	if err != nil {
		return nil, err
	}
	document, err := parse(text)
	if err != nil {
		return nil, err
	}
	if len(document.Content) == 0 {
		return &Tree{Value: value, Line: 1}, nil
	}
	return treeOf(document.Content[0], value), nil
}

// treeOf adds the lines of a node to its value. If their shapes differ, because of tags of YAML, all
// parts have the line of the whole.
func treeOf(node *yamltree.Node, value any) *Tree {
	tree := &Tree{Value: value, Line: node.Line}
	switch value := value.(type) {
	case map[string]any:
		tree.Fields = fieldsIn(node, value)
	case []any:
		for i, item := range value {
			of := node
			if node.Kind == yamltree.SequenceNode && i < len(node.Content) {
				of = node.Content[i]
			}
			tree.Items = append(tree.Items, treeOf(of, item))
		}
	}
	return tree
}

func fieldsIn(node *yamltree.Node, value map[string]any) []Field {
	left := maps.Clone(value)
	fields := make([]Field, 0, len(value))
	for i := 1; i < len(node.Content) && node.Kind == yamltree.MappingNode; i += 2 {
		key := node.Content[i-1]
		if field, ok := left[key.Value]; ok {
			fields = append(fields, Field{treeOf(node.Content[i], field), key.Value, key.Line})
			delete(left, key.Value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		fields = append(fields, Field{treeOf(node, left[name]), name, node.Line})
	}
	return fields
}

func jsonTree(text []byte) (*Tree, error) {
	value, err := decodeJSON(text)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	reader := jsonReader{text: text, decoder: decoder, line: 1}
	return reader.tree(value)
}

// jsonReader reads the lines of values that are decoded already.
type jsonReader struct {
	text    []byte
	decoder *json.Decoder
	// offset is the end of the text whose lines were counted.
	offset, line int
}

// next returns the next token and its line.
func (r *jsonReader) next() (json.Token, int, error) {
	token, err := r.decoder.Token()
	end := int(r.decoder.InputOffset())
	r.line += bytes.Count(r.text[r.offset:end], []byte("\n"))
	r.offset = end
	return token, r.line, err
}

func (r *jsonReader) tree(value any) (*Tree, error) {
	_, line, err := r.next()
	tree := &Tree{Value: value, Line: line}
	switch value := value.(type) {
	case map[string]any:
		for err == nil && r.decoder.More() {
			err = r.field(tree, value)
		}
	case []any:
		for i := 0; err == nil && i < len(value); i++ {
			var item *Tree
			item, err = r.tree(value[i])
			tree.Items = append(tree.Items, item)
		}
	default:
		return tree, err
	}
	if err != nil {
		return nil, err
	}
	_, _, err = r.next() // its end
	return tree, err
}

func (r *jsonReader) field(of *Tree, value map[string]any) error {
	token, line, err := r.next()
	if err != nil {
		return err
	}
	name, _ := token.(string)
	field, err := r.tree(value[name])
	of.Fields = append(of.Fields, Field{field, name, line})
	return err
}

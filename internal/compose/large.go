package compose

import (
	"errors"
	"strings"

	yamltree "go.yaml.in/yaml/v3"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// errNoList is the error of a text that is not one List.
var errNoList = errors.New("not one List")

// largeList returns the objects of a List that is larger than one manifest, as kubectl get prints it. Each
// item becomes a document of its own, with its aliases written out.
func (d Document) largeList() ([]Object, error) {
	root, err := nodeOf(d.Text)
	if err != nil {
		return nil, errNoList
	}
	items := listItems(root)
	if items == nil {
		return nil, errNoList
	}
	e := newExpander(len(d.Text) + manifest.MaxBytes)
	var all []Object
	for _, item := range items.Content {
		whole, err := e.node(item, 1)
		if err != nil {
			return nil, err
		}
		objects, err := objectsOfNode(whole)
		if err != nil {
			return nil, errorIn(item.Line, err)
		}
		for i := range objects {
			objects[i].Line, objects[i].Tree = d.Before+item.Line, nil
		}
		all = append(all, objects...)
	}
	return all, nil
}

// listItems returns the node of a List's items, or nil.
func listItems(document *yamltree.Node) *yamltree.Node {
	if len(document.Content) != 1 || document.Content[0].Kind != yamltree.MappingNode {
		return nil
	}
	var items *yamltree.Node
	isList, fields := false, document.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		switch key, value := fields[i].Value, fields[i+1]; {
		case key == "kind":
			isList = strings.HasSuffix(value.Value, "List")
		case key == "items" && value.Kind == yamltree.SequenceNode:
			items = value
		}
	}
	if !isList {
		return nil
	}
	return items
}

func objectsOfNode(node *yamltree.Node) ([]Object, error) {
	text, err := textOf(node)
	if err != nil {
		return nil, err
	}
	tree, err := manifest.DecodeTree(text)
	if err != nil {
		return nil, err
	}
	return Document{Text: text, Tree: tree}.objects()
}

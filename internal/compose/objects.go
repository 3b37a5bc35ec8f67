package compose

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamltree "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Object is an object of the input.
type Object struct {
	manifest.ID

	// File has the object from Line on. Line is 0 if no file has it, as for the result of a kustomization.
	File string
	Line int
	// Text is one document that webhook and agent read. It has the lines of the file if Tree is not
	// nil.
	Text  []byte
	Tree  *manifest.Tree
	Value map[string]any
}

// Place returns where the object was read, as file:line.
func (o Object) Place() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// lineOf is the line that an error of a parser names.
var lineOf = regexp.MustCompile(`\bline (\d+): `)

// errorAt returns an error about a document with its place.
func errorAt(file string, before int, err error) error {
	line, text := lineIn(err)
	return fmt.Errorf("%s:%d: %s", file, before+line, text)
}

// lineIn returns the line that an error names, or 1, and the rest of its text.
func lineIn(err error) (line int, text string) {
	text = err.Error()
	match := lineOf.FindStringSubmatch(text)
	if match == nil {
		return 1, text
	}
	if line, err = strconv.Atoi(match[1]); err != nil {
		return 1, text
	}
	return line, strings.Replace(text, match[0], "", 1)
}

// errorIn returns an error about a part of a document that begins at a line.
func errorIn(first int, err error) error {
	line, text := lineIn(err)
	return fmt.Errorf("line %d: %s", first+line-1, text)
}

// objects returns the objects of a document: one, the items of a List, or none.
func (d Document) objects() ([]Object, error) {
	if d.Tree == nil {
		return d.rewritten()
	}
	items, isList := itemsOf(d.Tree.Value)
	switch {
	case d.Tree.Value == nil:
		return nil, nil
	case isList:
		return d.objectsOf(items)
	}
	object, err := objectOf(d.Tree.Value)
	object.Line, object.Text, object.Tree = d.Before+d.Tree.Line, d.Text, d.Tree
	return []Object{object}, err
}

// itemsOf returns the items of a List, or of a plain list of objects.
func itemsOf(value any) ([]any, bool) {
	if items, ok := value.([]any); ok {
		return items, true
	}
	object, _ := value.(map[string]any)
	kind, _ := object["kind"].(string)
	items, ok := object["items"].([]any)
	return items, ok && strings.HasSuffix(kind, "List")
}

// objectsOf writes each item as a document of its own.
func (d Document) objectsOf(items []any) ([]Object, error) {
	objects := make([]Object, 0, len(items))
	for _, item := range items {
		object, err := objectOf(item)
		if err != nil {
			return nil, err
		}
		if object.Text, err = yaml.Marshal(item); err != nil {
			return nil, err
		}
		object.Line = d.Before + 1
		objects = append(objects, object)
	}
	return objects, nil
}

// rewritten reads a document that webhook and agent refuse, with its aliases written out.
func (d Document) rewritten() ([]Object, error) {
	_, refused := manifest.DecodeTree(d.Text)
	if len(d.Text) > manifest.MaxBytes {
		objects, err := d.largeList()
		if errors.Is(err, errNoList) {
			return nil, refused
		}
		return objects, err
	}
	text, err := expand(d.Text)
	if errors.Is(err, errUnreadable) {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	tree, err := manifest.DecodeTree(text)
	if err != nil {
		return nil, err
	}
	expanded := Document{Text: text, Before: d.Before, Tree: tree}
	objects, err := expanded.objects()
	for i := range objects {
		objects[i].Line, objects[i].Tree = d.Before+1, nil
	}
	return objects, err
}

func objectOf(value any) (Object, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return Object{}, errors.New("the document is no object: it needs apiVersion, kind and metadata.name")
	}
	id, err := manifest.Identify(fields)
	return Object{ID: id, Value: fields}, err
}

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
	e := newExpander(len(d.Text) + maxAliases)
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

package compose

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
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

// isManifest reports whether kubectl reads a file of this name in a folder.
func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// Read reads the objects of files and folders. The name "-" is the input. As in kubectl, only files
// called .yaml, .yml or .json count in a folder, and recursive includes the folders in it.
func Read(in io.Reader, names []string, recursive bool) ([]Object, error) {
	var objects []Object
	for _, name := range names {
		files, err := filesOf(name, recursive)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			called, text, err := ReadFile(in, file)
			if err != nil {
				return nil, err
			}
			found, err := objectsIn(called, text)
			if err != nil {
				return nil, err
			}
			objects = append(objects, found...)
		}
	}
	return objects, nil
}

func filesOf(name string, recursive bool) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return nil, fmt.Errorf("%s: addresses are not supported: pipe what they have to the command, as in curl URL | kubectl krake create NAME -f -", name)
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return []string{name}, nil
	}
	var files []string
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && !recursive:
			return filepath.SkipDir
		case !entry.IsDir() && isManifest(path):
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no file in it ends in .yaml, .yml or .json; -R also reads the folders in it", name)
	}
	return files, err
}

// ReadFile reads a file, or the input if its name is "-". Messages call it by the returned name.
func ReadFile(in io.Reader, name string) (called string, text []byte, err error) {
	if name == "-" {
		text, err = io.ReadAll(in)
		return "stdin", text, err
	}
	text, err = os.ReadFile(filepath.Clean(name))
	return name, text, err
}

// Kustomize reads the objects of a kustomization, as kubectl kustomize does.
func Kustomize(folder string) ([]Object, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("build the kustomization %s: %w", folder, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("build the kustomization %s: %w", folder, err)
	}
	objects, err := objectsIn(folder, text)
	for i := range objects {
		objects[i].Line, objects[i].Tree = 0, nil
	}
	return objects, err
}

func objectsIn(file string, text []byte) ([]Object, error) {
	var objects []Object
	for _, document := range Documents(text) {
		found, err := document.objects()
		if err != nil {
			return nil, errorAt(file, document.Before, err)
		}
		for _, object := range found {
			object.File = file
			objects = append(objects, object)
		}
	}
	return objects, nil
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

package compose

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

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

// ReadFile reads a file, or the input if its name is "-". Messages call it by the returned name. Like kubectl,
// it returns a text in UTF-16 with a byte order mark as UTF-8: PowerShell writes such files with >.
func ReadFile(in io.Reader, name string) (called string, text []byte, err error) {
	if called = name; name == "-" {
		called = "stdin"
		text, err = io.ReadAll(in)
	} else {
		text, err = os.ReadFile(filepath.Clean(name))
	}
	if err != nil {
		return called, nil, err
	}
	text, _, err = transform.Bytes(unicode.BOMOverride(transform.Nop), text)
	return called, text, err
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

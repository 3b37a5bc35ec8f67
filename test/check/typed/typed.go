// Package typed checks the types of packages of this module, for tests of the code itself. What a package imports is
// read as the compiler has left it in its cache, so a check takes milliseconds.
package typed

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Package is one package of the module, without its tests.
type Package struct {
	path     string
	set      *token.FileSet
	files    map[string]*ast.File // by name
	importer types.Importer
}

// listed is what go list says about a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// Load returns the packages that match the patterns, such as ./pkg/..., by their folders below the root of the module.
// Packages of the module that these import are among them.
func Load(t testing.TB, root string, patterns ...string) map[string]*Package {
	t.Helper()
	module, err := filepath.Abs(root)
	kit.Must(t, err)
	exports := map[string]string{} // by import path
	packages := map[string]*Package{}
	for _, each := range list(t, root, patterns) {
		exports[each.ImportPath] = each.Export
		if folder, err := filepath.Rel(module, each.Dir); err == nil && filepath.IsLocal(folder) {
			p := &Package{path: each.ImportPath, set: token.NewFileSet(), files: map[string]*ast.File{}}
			// Each has an importer of its own: one is not safe for concurrent use.
			p.importer = importer.ForCompiler(p.set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
			for _, name := range each.GoFiles {
				p.files[name], err = parser.ParseFile(p.set, filepath.Join(each.Dir, name), nil, parser.SkipObjectResolution)
				kit.Must(t, err)
			}
			packages[filepath.ToSlash(folder)] = p
		}
	}
	return packages
}

// list returns the packages that match, and all that they import.
func list(t testing.TB, root string, patterns []string) []listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go",
		append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, patterns...)...)
	command.Dir = root
	var complaints strings.Builder
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, complaints.String())
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var each listed
		err := decoder.Decode(&each)
		if errors.Is(err, io.EOF) {
			return all
		}
		kit.Must(t, err)
		all = append(all, each)
	}
}

// Check returns an error if the package does not compile with another text of one of its files.
func (p *Package) Check(name, text string) error {
	if p.files[name] == nil {
		return fmt.Errorf("%s is not compiled on this platform", name)
	}
	changed, err := parser.ParseFile(p.set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	files := []*ast.File{changed}
	for other, file := range p.files {
		if other != name {
			files = append(files, file)
		}
	}
	_, err = p.check(files)
	return err
}

func (p *Package) check(files []*ast.File) (*types.Package, error) {
	var mistakes []error
	config := types.Config{
		Importer: p.importer,
		Sizes:    types.SizesFor("gc", runtime.GOARCH),
		Error:    func(err error) { mistakes = append(mistakes, err) },
	}
	checked, _ := config.Check(p.path, p.set, files, nil) // the function above collects all its errors
	return checked, errors.Join(mistakes...)
}

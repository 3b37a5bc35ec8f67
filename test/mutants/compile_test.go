package main

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
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// A bug that does not compile tests nothing. The type checker tells in seconds, go test in an hour.
func TestEveryMutantCompiles(t *testing.T) {
	byFolder := map[string][]mutant{}
	for _, list := range [][]byte{list, faults} {
		mutants, err := read(list)
		kit.Must(t, err)
		for _, m := range mutants {
			folder := path.Dir(m.File)
			byFolder[folder] = append(byFolder[folder], m)
		}
	}
	packages := compiled(t, byFolder)
	for folder, mutants := range byFolder {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			pkg, exists := packages[folder]
			if !exists {
				t.Fatal("it has no package")
			}
			checker, err := pkg.checker(packages)
			kit.Must(t, err)
			for _, m := range mutants {
				text, err := m.changed(root)
				if err == nil {
					err = checker.check(m.File, text)
				}
				if err != nil {
					t.Errorf("%s: %v", m.Name, err)
				}
			}
		})
	}
}

// The check itself can fail.
func TestMutantsThatDoNotCompile(t *testing.T) {
	packages := compiled(t, map[string][]mutant{"pkg/schema": nil})
	checker, err := packages["pkg/schema"].checker(packages)
	kit.Must(t, err)
	const file = "pkg/schema/report.go"
	text, err := os.ReadFile(filepath.Join(root, file))
	kit.Must(t, err)
	tests := []struct{ why, text, want string }{
		{"the file as it is", string(text), ""},
		{"no Go", string(text) + "\nfunc", "expected 'IDENT'"},
		{"a name that is not known", string(text) + "\nvar x = y\n", "undefined: y"},
		{"a variable that is not used", string(text) + "\nfunc x() { y := 1 }\n", "declared and not used: y"},
		{"a package that is not used", strings.Replace(string(text), "import (", "import (\n\t\"os\"\n", 1), `"os" imported and not used`},
	}
	for _, test := range tests {
		err := checker.check(file, test.text)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.why, err, test.want)
		}
	}
}

// listed is what go list says about a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// compiled returns the packages of folders of the repository by folder, and all that they import by import path.
func compiled[T any](t *testing.T, folders map[string]T) map[string]listed {
	t.Helper()
	arguments := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for folder := range folders {
		arguments = append(arguments, "./"+folder)
	}
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir = root
	command.Stderr = os.Stderr
	output, err := command.Output()
	kit.Must(t, err)
	module, err := filepath.Abs(root)
	kit.Must(t, err)
	packages := map[string]listed{}
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for {
		var pkg listed
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return packages
		} else {
			kit.Must(t, err)
		}
		packages[pkg.ImportPath] = pkg
		if folder, err := filepath.Rel(module, pkg.Dir); err == nil && filepath.IsLocal(folder) {
			packages[filepath.ToSlash(folder)] = pkg
		}
	}
}

// checker checks the types of one package with one file changed.
type checker struct {
	path     string
	set      *token.FileSet
	files    map[string]*ast.File // by name
	importer types.Importer
}

func (l listed) checker(packages map[string]listed) (*checker, error) {
	c := &checker{path: l.ImportPath, set: token.NewFileSet(), files: map[string]*ast.File{}}
	c.importer = importer.ForCompiler(c.set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(packages[path].Export)
	})
	for _, name := range l.GoFiles {
		file, err := parser.ParseFile(c.set, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.files[name] = file
	}
	return c, nil
}

// check returns an error if the package does not compile with another text of a file.
func (c *checker) check(file, text string) error {
	name := path.Base(file)
	if c.files[name] == nil {
		return fmt.Errorf("%s is not compiled on this platform", file)
	}
	changed, err := parser.ParseFile(c.set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	files := []*ast.File{changed}
	for other, parsed := range c.files {
		if other != name {
			files = append(files, parsed)
		}
	}
	var mistakes []error
	config := types.Config{
		Importer: c.importer,
		Sizes:    types.SizesFor("gc", runtime.GOARCH),
		Error:    func(err error) { mistakes = append(mistakes, err) },
	}
	_, _ = config.Check(c.path, c.set, files, nil) // all its errors are told to the function above
	return errors.Join(mistakes...)
}

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

var (
	// aStop is a step of a walk, which names a function or a method: `pkg/reconcile.writer.repair`.
	aStop = regexp.MustCompile("(?m)^[0-9]+\\. `((?:pkg|internal)/[a-z/]+)\\.([A-Za-z.]+)`")
	aFile = regexp.MustCompile("`((?:pkg|internal|cmd)/[a-z_/-]+\\.go)`")
)

// Each stop of the architecture page's walks is a function that exists, and each file that the page
// names is there.
func TestTheArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	kit.Must(t, err)
	for _, named := range aFile.FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(root, named[1])); err != nil {
			t.Error(err)
		}
	}
	functions := map[string]map[string]bool{}
	for _, named := range aStop.FindAllStringSubmatch(string(text), -1) {
		folder, name := named[1], named[2]
		if functions[folder] == nil {
			functions[folder] = functionsOf(t, folder)
		}
		if !functions[folder][name] {
			t.Errorf("%s has no function %s", folder, name)
		}
	}
}

// functionsOf returns the functions of a package, as Desire, and its methods, as
// handler.Handle.
func functionsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	kit.Must(t, err)
	names := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		kit.Must(t, err)
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok {
				names[receiverOf(function)+function.Name.Name] = true
			}
		}
	}
	return names
}

// receiverOf returns "handler." for a method of handler or of a pointer to it, and nothing
// for a function.
func receiverOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	of := function.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

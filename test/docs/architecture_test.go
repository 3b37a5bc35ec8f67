package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// mostStops limits a walk, so that a newcomer can follow it.
const mostStops = 15

// stop is a step of a walk, which names a function: `pkg/reconcile.writer.repair`.
var stop = regexp.MustCompile("^[0-9]+\\. `((?:pkg|internal)/[a-z/]+)\\.([A-Za-z.]+)`")

// The walks of the architecture page are short, and each of their stops is a function that
// exists.
func TestWalksLeadThroughFunctionsThatExist(t *testing.T) {
	walks, functions := 0, map[string]map[string]bool{}
	for _, section := range sectionsOf(t, "architecture.md") {
		stops := 0
		for line := range strings.Lines(section) {
			named := stop.FindStringSubmatch(line)
			if named == nil {
				continue
			}
			stops++
			if functions[named[1]] == nil {
				functions[named[1]] = functionsOf(t, named[1])
			}
			if !functions[named[1]][named[2]] {
				t.Errorf("%s has no function %s", named[1], named[2])
			}
		}
		if stops > mostStops {
			t.Errorf("a walk has %d stops, and %d at most can be followed:\n%s", stops, mostStops, section)
		}
		if stops > 0 {
			walks++
		}
	}
	if walks != 2 {
		t.Errorf("%d walks were found, want 2", walks)
	}
}

// The file that the architecture page names for each behaviour exists.
func TestBehavioursAreInFilesThatExist(t *testing.T) {
	file := regexp.MustCompile("(?m)^\\| .* \\| `([a-z/]+\\.go)` \\|$")
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	kit.Must(t, err)
	found := file.FindAllStringSubmatch(string(text), -1)
	for _, one := range found {
		if _, err := os.Stat(filepath.Join(root, one[1])); err != nil {
			t.Error(err)
		}
	}
	if len(found) < 40 {
		t.Errorf("%d behaviours were found, want 40", len(found))
	}
}

func sectionsOf(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	kit.Must(t, err)
	return strings.Split(string(text), "\n## ")
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

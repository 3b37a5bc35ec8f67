package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Check reads the Go files of the module whose root is the directory, with any build
// constraints. It returns each import that breaks the order, by file and line. It skips
// folders that the go command does not count to the module.
func Check(root, module string) ([]string, error) {
	c := checker{tree: os.DirFS(root), module: module, files: token.NewFileSet()}
	err := fs.WalkDir(c.tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && c.isForeign(name):
			return fs.SkipDir
		case !entry.IsDir() && path.Ext(name) == ".go":
			return c.file(name)
		}
		return nil
	})
	return c.violations, err
}

type checker struct {
	tree       fs.FS
	module     string
	files      *token.FileSet
	violations []string
}

// isForeign reports whether the go command does not count a folder to the module.
func (c *checker) isForeign(dir string) bool {
	name := path.Base(dir)
	_, err := fs.Stat(c.tree, path.Join(dir, "go.mod"))
	return err == nil || name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// source is a file of a package that is in a layer.
type source struct {
	pkg    string
	layer  layer
	isTest bool
}

func (s source) isPure() bool { return (s.layer <= pureUpTo || isPureAbove(s.pkg)) && !s.isTest }

func (c *checker) file(name string) error {
	s := source{pkg: path.Dir(name), isTest: strings.HasSuffix(name, "_test.go")}
	var inLayer bool
	if s.layer, inLayer = layerOf(s.pkg); !inLayer {
		if needsLayer(s.pkg) {
			c.violations = append(c.violations, fmt.Sprintf("%s: %s is in no layer: give it a layer in internal/layers", name, s.pkg))
		}
		return nil
	}
	text, err := fs.ReadFile(c.tree, name)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(c.files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse %w", err)
	}
	for _, spec := range parsed.Imports {
		imported := strings.Trim(spec.Path.Value, "\"`")
		if s.isPure() && isImpure(imported) {
			c.report(spec.Pos(), "imports %s: %s is pure", imported, s.pkg)
		}
		target, ours := strings.CutPrefix(imported, c.module+"/")
		if reason := s.objection(target); ours && reason != "" {
			c.report(spec.Pos(), "imports %s", reason)
		}
	}
	if s.isPure() {
		c.clock(s, parsed)
	}
	return nil
}

// objection returns why the file may not import a package of its own module, empty if it may.
func (s source) objection(target string) string {
	other, ok := layerOf(target)
	switch {
	case target == s.pkg: // the test of a package imports it
	case !ok && needsLayer(target):
		return target + ", which is in no layer: give it a layer in internal/layers"
	case target == "internal/layers":
		return target + ", which is in no layer: no package may"
	case !ok && !s.isTest:
		return target + ", which is in no layer: only tests may"
	case !ok:
	case other > s.layer, other == s.layer && !isRoomOf(target, s.pkg):
		return fmt.Sprintf("%s of layer %d: %s, of layer %d, imports only layers below its own", target, other, s.pkg, s.layer)
	case knowsNoApplication(s.pkg) && isApplication(target):
		return fmt.Sprintf("%s: %s knows no Application", target, s.pkg)
	}
	return ""
}

// clock reports every mention of a function that depends on the time, called or not.
func (c *checker) clock(s source, parsed *ast.File) {
	at := slices.IndexFunc(parsed.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == `"time"` })
	if at < 0 {
		return
	}
	name := "time"
	if alias := parsed.Imports[at].Name; alias != nil {
		name = alias.Name
	}
	if name == "." {
		c.report(parsed.Package, "imports time without a name: %s is pure, and its clock could not be seen", s.pkg)
		return
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok && isClock(selector.Sel.Name) {
			if qualifier, ok := selector.X.(*ast.Ident); ok && qualifier.Name == name {
				c.report(selector.Pos(), "uses time.%s: %s is pure", selector.Sel.Name, s.pkg)
			}
		}
		return true
	})
}

func (c *checker) report(at token.Pos, format string, arguments ...any) {
	position := c.files.Position(at)
	c.violations = append(c.violations, fmt.Sprintf("%s:%d: ", position.Filename, position.Line)+fmt.Sprintf(format, arguments...))
}

package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Violation is a place where the order is broken.
type Violation struct {
	// File is the path within the module.
	File string
	// Line is 0 if the whole file is meant.
	Line   int
	Reason string
}

// String gives "file:line: reason".
func (v Violation) String() string {
	if v.Line == 0 {
		return v.File + ": " + v.Reason
	}
	return fmt.Sprintf("%s:%d: %s", v.File, v.Line, v.Reason)
}

// Check reads the Go files of the module whose root is the directory, whatever
// their build constraints, and gives all that breaks the order, by file and
// line. Folders named testdata and modules within the module are left out.
func Check(root, module string) ([]Violation, error) {
	c := checker{root: root, module: module, files: token.NewFileSet()}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && isForeign(name):
			return fs.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, ".go"):
			return c.file(name)
		}
		return nil
	})
	return c.violations, err
}

// isForeign tells of folders that the go command does not count to the module.
func isForeign(dir string) bool {
	name := filepath.Base(dir)
	if name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

type checker struct {
	root, module string
	files        *token.FileSet
	violations   []Violation
}

// source is a file of a package that is in a layer.
type source struct {
	name   string // within the module
	pkg    string
	layer  layer
	isTest bool
}

func (s source) isPure() bool { return (s.layer <= pureUpTo || isPureAbove(s.pkg)) && !s.isTest }

func (c *checker) file(name string) error {
	relative, err := filepath.Rel(c.root, name)
	if err != nil {
		return fmt.Errorf("locate %s: %w", name, err)
	}
	relative = filepath.ToSlash(relative)
	s := source{name: relative, pkg: path.Dir(relative), isTest: strings.HasSuffix(relative, "_test.go")}
	own, ok := layerOf(s.pkg)
	if !ok {
		if needsLayer(s.pkg) {
			c.add(s, token.NoPos, "%s is in no layer: give it a layer in internal/layers", s.pkg)
		}
		return nil
	}
	s.layer = own
	parsed, err := parser.ParseFile(c.files, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse %s: %w", relative, err)
	}
	for _, spec := range parsed.Imports {
		c.imported(s, spec)
	}
	if s.isPure() {
		c.clock(s, parsed)
	}
	return nil
}

func (c *checker) imported(s source, spec *ast.ImportSpec) {
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return // the parser has accepted it
	}
	if s.isPure() && isImpure(imported) {
		c.add(s, spec.Pos(), "imports %s: %s is pure", imported, s.pkg)
	}
	target, ok := strings.CutPrefix(imported, c.module+"/")
	if !ok || target == s.pkg { // the test of a package imports it
		return
	}
	if reason := s.objection(target); reason != "" {
		c.add(s, spec.Pos(), "imports %s", reason)
	}
}

// objection tells why the file may not import a package of its own module.
func (s source) objection(target string) string {
	other, ok := layerOf(target)
	switch {
	case !ok && needsLayer(target):
		return target + ", which is in no layer: give it a layer in internal/layers"
	case target == "internal/layers":
		return target + ", which is in no layer: nobody may"
	case !ok && !s.isTest:
		return target + ", which is in no layer: only tests may"
	case !ok:
		return ""
	case other > s.layer, other == s.layer && !isRoomOf(target, s.pkg):
		return fmt.Sprintf("%s of layer %d: %s, of layer %d, imports only layers below its own", target, other, s.pkg, s.layer)
	case knowsNoApplication(s.pkg) && isApplication(target):
		return fmt.Sprintf("%s: %s knows no Application", target, s.pkg)
	}
	return ""
}

// clock reports every mention of a function that depends on the time, whether
// it is called or handed on.
func (c *checker) clock(s source, parsed *ast.File) {
	name := nameOfTime(parsed)
	if name == "." {
		c.add(s, parsed.Package, "imports time without a name: %s is pure, and its clock could not be seen", s.pkg)
		return
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		qualifier, ok := selector.X.(*ast.Ident)
		if ok && name != "" && qualifier.Name == name && isClock(selector.Sel.Name) {
			c.add(s, selector.Pos(), "uses time.%s: %s is pure", selector.Sel.Name, s.pkg)
		}
		return true
	})
}

// nameOfTime gives the name that a file has for package time, if it imports it.
func nameOfTime(parsed *ast.File) string {
	for _, spec := range parsed.Imports {
		switch {
		case spec.Path.Value != `"time"`:
		case spec.Name != nil:
			return spec.Name.Name
		default:
			return "time"
		}
	}
	return ""
}

func (c *checker) add(s source, at token.Pos, format string, arguments ...any) {
	c.violations = append(c.violations, Violation{
		File: s.name, Line: c.files.Position(at).Line, Reason: fmt.Sprintf(format, arguments...),
	})
}

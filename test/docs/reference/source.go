package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const module = "github.com/krake-observer/krake-observer"

// source reads the text of the module's packages.
type source struct {
	root     string
	files    *token.FileSet
	standard types.Importer
	packages map[string]*types.Package
}

func newSource(root string) *source {
	return &source{root: root, files: token.NewFileSet(), standard: importer.Default(), packages: map[string]*types.Package{}}
}

// parse returns the files of a folder, except tests.
func (s *source) parse(folder string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(s.root, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	if len(parsed) == 0 {
		return nil, fmt.Errorf("%s: there is no Go file in it: run this in the folder of the module", folder)
	}
	return parsed, nil
}

// Import implements types.Importer for the packages that constants depend on: packages
// of the module, and time. All other packages are empty.
func (s *source) Import(path string) (*types.Package, error) {
	switch folder, ours := strings.CutPrefix(path, module+"/"); {
	case ours:
		return s.load(folder)
	case path == "time":
		return s.standard.Import(path)
	}
	return nil, errors.New("its constants are not looked at")
}

func (s *source) load(folder string) (*types.Package, error) {
	if loaded, ok := s.packages[folder]; ok {
		return loaded, nil
	}
	files, err := s.parse(folder)
	if err != nil {
		return nil, err
	}
	// A dependency on another package is an error, which does not concern our
	// constants.
	config := types.Config{Importer: s, IgnoreFuncBodies: true, Error: func(error) {}}
	loaded, _ := config.Check(module+"/"+folder, s.files, files, nil)
	s.packages[folder] = loaded
	return loaded, nil
}

// constants returns the constants of a package that have known values.
func (s *source) constants(folder string) (map[string]*types.Const, error) {
	loaded, err := s.load(folder)
	if err != nil {
		return nil, err
	}
	found := map[string]*types.Const{}
	for _, name := range loaded.Scope().Names() {
		object, ok := loaded.Scope().Lookup(name).(*types.Const)
		if ok && object.Val().Kind() != constant.Unknown {
			found[name] = object
		}
	}
	return found, nil
}

// valueOf formats the value of a constant for users: a duration as such, and bytes in
// the largest unit that divides them.
func valueOf(of *types.Const, isBytes bool) string {
	switch of.Val().Kind() {
	case constant.String:
		return constant.StringVal(of.Val())
	case constant.Int:
		number, _ := constant.Int64Val(of.Val())
		switch {
		case of.Type().String() == "time.Duration":
			return durationOf(time.Duration(number))
		case isBytes:
			return bytesOf(number)
		}
		return groupedOf(number)
	}
	return of.Val().String()
}

// durationOf formats a duration without the zeros of time.Duration: 4h, 10m, 15s.
func durationOf(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func bytesOf(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + " MiB"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return groupedOf(n) + " bytes"
}

func groupedOf(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// textOf returns the text of a string literal, empty for any other expression.
func textOf(expression ast.Expr) string {
	literal, ok := expression.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value) // a literal that was parsed
	return text
}

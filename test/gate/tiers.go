package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pkg is a package that has tests.
type pkg struct {
	path  string // relative to the module
	tests []test
}

// test is a test function. A long one does not run in the commit tier. A sampled one
// runs in both, in the verify tier with all samples.
type test struct {
	name          string
	long, sampled bool
	// numbers are the threats (A13) and invariants (I2) that the comment of the test names.
	numbers []string
	// proves is the first sentence of the comment that names them.
	proves string
}

func (t test) tiers() string {
	switch {
	case t.long:
		return tierVerify
	case t.sampled:
		return tierCommit + " (a sample), " + tierVerify
	}
	return tierCommit
}

// inVerify returns the names of the tests that the verify tier runs.
func (p pkg) inVerify() []string {
	var names []string
	for _, t := range p.tests {
		if t.long || t.sampled {
			names = append(names, t.name)
		}
	}
	return names
}

// findPackages lists the packages of the patterns that have tests, with the tests.
func findPackages(ctx context.Context, patterns []string) ([]pkg, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles,Module"}, patterns...)...)
	var problems bytes.Buffer
	command.Stderr = &problems
	text, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &problems)
	}
	var found []pkg
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var listed struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
			Module                    struct{ Path string }
		}
		err := decoder.Decode(&listed)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		p := pkg{path: strings.TrimPrefix(listed.ImportPath, listed.Module.Path+"/")}
		for _, file := range slices.Concat(listed.TestGoFiles, listed.XTestGoFiles) {
			tests, err := findTests(filepath.Join(listed.Dir, file))
			if err != nil {
				return nil, err
			}
			p.tests = append(p.tests, tests...)
		}
		if len(p.tests) > 0 {
			found = append(found, p)
		}
	}
}

// findTests returns the test functions of a file, with examples and fuzz targets, which
// run with their corpus.
func findTests(file string) ([]test, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("read tests: %w", err)
	}
	var tests []test
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv != nil || !isTest(function.Name.Name) {
			continue
		}
		t := test{name: function.Name.Name}
		t.numbers, t.proves = numbersOf(function.Doc.Text())
		ast.Inspect(function.Body, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				function := types.ExprString(call.Fun)
				t.long = t.long || function == "kit.Long"
				t.sampled = t.sampled || function == "testing.Short"
			}
			return true
		})
		tests = append(tests, t)
	}
	return tests, nil
}

func isTest(name string) bool {
	return name != "TestMain" && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example"))
}

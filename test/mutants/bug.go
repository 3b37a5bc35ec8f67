package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/quasilyte/gogrep"
	"sigs.k8s.io/yaml"
)

// bug is a small change of one function, of the kind that people make.
type bug struct {
	Name string `json:"name"`
	// In is the folder of a package, and a function in it as stack traces name it, such as pkg/apply.(*Cluster).Delete.
	In string `json:"in"`
	// Find is an expression, or a list of statements, in the syntax of gogrep: $x stands for any node, and $*x for any
	// number of them. The function has it exactly once. As locals are metavariables, their names do not matter.
	Find string `json:"find"`
	// Put is what replaces it. A metavariable stands for the source text that it has matched, and $$ for all of it.
	Put string `json:"put"`
	// Harm is what a user would suffer.
	Harm string `json:"harm"`
	// Tests are the arguments of go test for the tests that catch it.
	Tests string `json:"tests"`
}

// read returns the bugs of a list.
func read(list []byte) ([]bug, error) {
	var bugs []bug
	if err := yaml.UnmarshalStrict(list, &bugs); err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	var mistakes []error
	seen := map[string]bool{}
	for _, b := range bugs {
		if b.Name == "" || b.In == "" || b.Find == "" || b.Harm == "" || b.Tests == "" {
			mistakes = append(mistakes, fmt.Errorf("%s: a bug has a name, and says in, find, harm and tests", b.Name))
		}
		if seen[b.Name] {
			mistakes = append(mistakes, fmt.Errorf("%s: two bugs have this name", b.Name))
		}
		seen[b.Name] = true
	}
	return bugs, errors.Join(mistakes...)
}

// folder is the folder of the package.
func (b bug) folder() string {
	folder, _, _ := strings.Cut(b.In, ".")
	return folder
}

// source is a file of a package.
type source struct {
	path string
	text []byte
	set  *token.FileSet
	file *ast.File
}

// at returns the text of a node, empty for no node.
func (s source) at(from, to token.Pos) string {
	if !from.IsValid() {
		return ""
	}
	return string(s.text[s.set.Position(from).Offset:s.set.Position(to).Offset])
}

// plant returns the file of the function, and its text with the bug.
func (b bug) plant(root string) (path, text string, err error) {
	in, function, err := b.function(root)
	if err != nil {
		return "", "", err
	}
	planted, err := b.replace(in, function)
	if err == nil && len(planted) != 1 {
		err = fmt.Errorf("%s: %s has the pattern %d times, and not once", b.Name, b.In, len(planted))
	}
	if err != nil {
		return "", "", err
	}
	if planted[0] == string(in.text) {
		return "", "", fmt.Errorf("%s: it changes nothing", b.Name)
	}
	return in.path, planted[0], nil
}

// function finds the function in the files of the package.
func (b bug) function(root string) (source, *ast.FuncDecl, error) {
	files, err := filepath.Glob(filepath.Join(root, b.folder(), "*.go"))
	if err != nil {
		return source{}, nil, err
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		in := source{path: path, set: token.NewFileSet()}
		if in.text, err = os.ReadFile(path); err == nil {
			in.file, err = parser.ParseFile(in.set, path, in.text, parser.SkipObjectResolution)
		}
		if err != nil {
			return source{}, nil, fmt.Errorf("%s: %w", b.Name, err)
		}
		for _, declaration := range in.file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && b.folder()+"."+nameOf(function) == b.In {
				return in, function, nil
			}
		}
	}
	return source{}, nil, fmt.Errorf("%s: there is no function %s", b.Name, b.In)
}

// nameOf returns the name of a function as a stack trace has it: method is (*Type).method or Type.method.
func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := types.ExprString(function.Recv.List[0].Type)
	if strings.HasPrefix(receiver, "*") {
		receiver = "(" + receiver + ")"
	}
	return receiver + "." + function.Name.Name
}

var metavariable = regexp.MustCompile(`\$(\$|[a-zA-Z_]\w*)`)

// replace returns the text of the file with each match of the pattern replaced.
func (b bug) replace(in source, function *ast.FuncDecl) (planted []string, err error) {
	pattern, variables, err := gogrep.Compile(gogrep.CompileConfig{Fset: token.NewFileSet(), Src: strings.TrimSpace(b.Find), Strict: true})
	if err != nil {
		return nil, fmt.Errorf("%s: the pattern: %w", b.Name, err)
	}
	for _, name := range metavariable.FindAllStringSubmatch(b.Put, -1) {
		if _, known := variables.Vars[name[1]]; !known && name[1] != "$" {
			return nil, fmt.Errorf("%s: %s is not in the pattern", b.Name, name[0])
		}
	}
	state := gogrep.NewMatcherState()
	seen := map[[2]token.Pos]bool{} // an expression is a statement, too
	ast.Inspect(function, func(n ast.Node) bool {
		if n == nil {
			return true
		}
		pattern.MatchNode(&state, n, func(match gogrep.MatchData) {
			from, to := match.Node.Pos(), match.Node.End()
			if seen[[2]token.Pos{from, to}] {
				return
			}
			seen[[2]token.Pos{from, to}] = true
			put := metavariable.ReplaceAllStringFunc(b.Put, func(name string) string {
				if name == "$$" {
					return in.at(from, to)
				}
				captured, _ := match.CapturedByName(name[1:])
				if captured == nil || gogrep.IsEmptyNodeSlice(captured) {
					return ""
				}
				return in.at(captured.Pos(), captured.End())
			})
			planted = append(planted, in.at(in.file.FileStart, from)+put+in.at(to, in.file.FileEnd))
		})
		return true
	})
	return planted, nil
}

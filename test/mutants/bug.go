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
	// In is the folder of a package, and a function in it as stack traces name it, such as internal/apply.(*Cluster).Delete.
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

// plant returns the file of the function, and its text with the bug.
func (b bug) plant(root string) (path, text string, err error) {
	files, err := filepath.Glob(filepath.Join(root, b.folder(), "*.go"))
	if err != nil {
		return "", "", err
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		original, err := os.ReadFile(path)
		if err != nil {
			return "", "", err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, original, parser.SkipObjectResolution)
		if err != nil {
			return "", "", err
		}
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && b.folder()+"."+nameOf(function) == b.In {
				text, err = b.replace(source{string(original), set.File(file.FileStart)}, function)
				return path, text, err
			}
		}
	}
	return "", "", fmt.Errorf("%s: there is no function %s", b.Name, b.In)
}

// nameOf returns the name of a function as a stack trace has it: a method is (*Type).method or Type.method.
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

// source is the text of a file, with its positions.
type source struct {
	text string
	file *token.File
}

// of returns the text of a node, empty for no node.
func (s source) of(n ast.Node) string {
	if n == nil || gogrep.IsEmptyNodeSlice(n) {
		return ""
	}
	return s.text[s.file.Offset(n.Pos()):s.file.Offset(n.End())]
}

var metavariable = regexp.MustCompile(`\$(\$|[a-zA-Z_]\w*)`)

// replace returns the text of the file with the one match of the pattern replaced.
func (b bug) replace(in source, function *ast.FuncDecl) (string, error) {
	pattern, info, err := gogrep.Compile(gogrep.CompileConfig{Fset: token.NewFileSet(), Src: b.Find, Strict: true})
	if err != nil {
		return "", fmt.Errorf("%s: the pattern: %w", b.Name, err)
	}
	for _, name := range metavariable.FindAllStringSubmatch(b.Put, -1) {
		if _, known := info.Vars[name[1]]; !known && name[0] != "$$" {
			return "", fmt.Errorf("%s: %s is not in the pattern", b.Name, name[0])
		}
	}
	planted := map[[2]token.Pos]string{} // by place: a call is an expression and a statement
	state := gogrep.NewMatcherState()
	ast.Inspect(function, func(n ast.Node) bool {
		if n == nil {
			return true
		}
		pattern.MatchNode(&state, n, func(match gogrep.MatchData) {
			put := metavariable.ReplaceAllStringFunc(b.Put, func(name string) string {
				captured, _ := match.CapturedByName(strings.TrimPrefix(name, "$"))
				if name == "$$" {
					captured = match.Node
				}
				return in.of(captured)
			})
			from, to := match.Node.Pos(), match.Node.End()
			planted[[2]token.Pos{from, to}] = in.text[:in.file.Offset(from)] + put + in.text[in.file.Offset(to):]
		})
		return true
	})
	if len(planted) != 1 {
		return "", fmt.Errorf("%s: %s has the pattern %d times, and not once", b.Name, b.In, len(planted))
	}
	for _, text := range planted {
		if text != in.text {
			return text, nil
		}
	}
	return "", fmt.Errorf("%s: it changes nothing", b.Name)
}

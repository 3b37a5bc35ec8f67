package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	markdown "github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extended "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// kind is the sort of text that a passage is part of.
type kind string

const (
	page    kind = "Markdown"
	comment kind = "comment"
	literal kind = "string"
)

// passage is a paragraph, a comment, or a string, without the code in it.
type passage struct {
	file string
	line int
	kind kind
	text string
}

// code replaces a piece of code in a passage: it counts as a word, and is never
// forbidden.
const code = "CODE"

// collect returns the passages of the files, and of those below the folders. It skips
// folders whose name begins with a dot, build results and inputs of tests.
func collect(roots []string) ([]passage, error) {
	var all []passage
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := entry.Name()
			if entry.IsDir() {
				if path != root && (name[0] == '.' && name != ".github" || name == "bin" || name == "testdata") {
					return filepath.SkipDir
				}
				return nil
			}
			found, err := passagesOf(filepath.ToSlash(path))
			all = append(all, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func passagesOf(path string) ([]passage, error) {
	switch filepath.Ext(path) {
	case ".md":
		source, err := os.ReadFile(path)
		return pageOf(path, source), err
	case ".go":
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return programOf(path, source)
	}
	return nil, nil
}

// pageOf returns the paragraphs, headings and cells of a page in Markdown.
func pageOf(path string, source []byte) []passage {
	var all []passage
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	line := 1
	_ = markdown.Walk(document, func(node markdown.Node, entering bool) (markdown.WalkStatus, error) { // the walk itself has no error
		if !entering {
			return markdown.WalkContinue, nil
		}
		switch node.(type) {
		case *markdown.Paragraph, *markdown.TextBlock, *markdown.Heading, *extended.TableCell:
			if lines := node.Lines(); lines != nil && lines.Len() > 0 {
				line = 1 + strings.Count(string(source[:lines.At(0).Start]), "\n")
			}
			all = append(all, passage{file: path, line: line, kind: page, text: inline(node, source)})
			return markdown.WalkSkipChildren, nil
		}
		return markdown.WalkContinue, nil
	})
	return all
}

// inline returns the text of a block, with [code] in place of code.
func inline(node markdown.Node, source []byte) string {
	var b strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *markdown.CodeSpan:
			b.WriteString(code)
		case *markdown.Text:
			b.Write(child.Value(source))
			if child.SoftLineBreak() || child.HardLineBreak() {
				b.WriteByte(' ')
			}
		default:
			b.WriteString(inline(child, source))
		}
	}
	return b.String()
}

// programOf returns the comments of a Go file, and the sentences among the string literals of the
// product.
func programOf(path string, source []byte) ([]passage, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var all []passage
	if ast.IsGenerated(file) {
		return nil, nil
	}
	for _, group := range file.Comments {
		for _, paragraph := range paragraphs(group.Text()) {
			all = append(all, passage{file: path, line: files.Position(group.Pos()).Line, kind: comment, text: paragraph})
		}
	}
	if strings.HasPrefix(path, "test/") || strings.HasSuffix(path, "_test.go") {
		return all, nil
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			node.Tag = nil
		case *ast.BasicLit:
			if value, err := strconv.Unquote(node.Value); node.Kind == token.STRING && err == nil && isSentence(value) {
				all = append(all, passage{file: path, line: files.Position(node.Pos()).Line, kind: literal, text: value})
			}
		}
		return true
	})
	return all, nil
}

// paragraphs splits a comment where a sentence ends: at empty lines, at list items, and
// around code, which is indented and omitted.
func paragraphs(comment string) []string {
	var all []string
	var current []string
	end := func() {
		if len(current) > 0 {
			all = append(all, strings.Join(current, " "))
		}
		current = nil
	}
	for l := range strings.Lines(comment) {
		l = strings.TrimRight(l, "\n")
		trimmed := strings.TrimSpace(l)
		switch isPoint := strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "* "); {
		case trimmed == "" || l[0] == '\t' || strings.HasPrefix(l, "  ") && !isPoint && len(current) == 0:
			end()
		case isPoint:
			end()
			current = []string{trimmed[2:]}
		default:
			current = append(current, trimmed)
		}
	}
	end()
	return all
}

var words = regexp.MustCompile(`[A-Za-z]{2,} [a-z]+ [a-z]+`)

// isSentence reports whether a string has at least three words in a row: people read it.
func isSentence(value string) bool { return words.MatchString(value) }

package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Page is a file of the documentation.
type Page struct {
	// Path is the path of the file.
	Path string
	// Sections are in the order of the page. The first one has no heading, and the text
	// before all headings.
	Sections []Section
	// Links are the targets of links and images, as written.
	Links []Link
}

// Section is a heading and its text, up to the next heading of any level.
type Section struct {
	Heading string
	// Anchor is the heading's anchor for links.
	Anchor string
	// Parts are the blocks and tables, in order.
	Parts []Part
}

// Part is a block or a table: one of the two is nil.
type Part struct {
	Block *Block
	Table *Table
}

// Block is a block of code.
type Block struct {
	// Line is the number of its first line in the file, or of its fence.
	Line int
	// Fenced distinguishes it from an indented block, and Info has the words after the
	// fence.
	Fenced bool
	Info   []string
	Text   string
}

// Is reports whether the block is fenced with this word.
func (b *Block) Is(word string) bool { return slices.Contains(b.Info, word) }

// Table is a table without its header.
type Table struct {
	Rows [][]Cell
}

// Cell is a cell of a table.
type Cell struct {
	// Text is the text without marks, and Codes are the parts of it in code.
	Text  string
	Codes []string
}

// Link is a link to another place.
type Link struct {
	Line int
	To   string
}

// ReadAll reads the pages for users in a checkout: README, CONTRIBUTING, and docs
// without the decisions, which describe the past.
func ReadAll(root string) ([]*Page, error) {
	var pages []*Page
	read := func(path string) error {
		page, err := Read(path)
		pages = append(pages, page)
		return err
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md"} {
		if err := read(filepath.Join(root, name)); err != nil {
			return nil, err
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "adr":
			return fs.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		return read(path)
	})
	return pages, err
}

// Read reads a page.
func Read(path string) (*Page, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := reader{source: source, page: &Page{Path: path, Sections: make([]Section, 1)}, anchors: map[string]int{}}
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	if err := ast.Walk(document, r.visit); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return r.page, nil
}

// reader reads a page.
type reader struct {
	source  []byte
	page    *Page
	anchors map[string]int // counts the headings with the same anchor
}

func (r *reader) visit(node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	switch node := node.(type) {
	case *ast.Heading:
		heading := r.textOf(node)
		r.page.Sections = append(r.page.Sections, Section{Heading: heading, Anchor: r.anchorOf(heading)})
	case *ast.FencedCodeBlock:
		block := &Block{Line: r.lineOf(node), Fenced: true, Text: r.linesOf(node)}
		if node.Info != nil {
			block.Info = strings.Fields(string(node.Info.Value(r.source)))
		}
		r.add(Part{Block: block})
	case *ast.CodeBlock:
		r.add(Part{Block: &Block{Line: r.lineOf(node), Text: r.linesOf(node)}})
	case *extensionast.Table:
		r.add(Part{Table: r.tableOf(node)})
	case *ast.Link:
		r.page.Links = append(r.page.Links, Link{Line: r.lineOf(node), To: string(node.Destination)})
	case *ast.Image:
		r.page.Links = append(r.page.Links, Link{Line: r.lineOf(node), To: string(node.Destination)})
	}
	return ast.WalkContinue, nil
}

func (r *reader) add(part Part) {
	section := &r.page.Sections[len(r.page.Sections)-1]
	section.Parts = append(section.Parts, part)
}

// anchorOf returns the anchor of a heading, as GitHub makes it.
func (r *reader) anchorOf(heading string) string {
	anchor := strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-', c == '_', unicode.IsLetter(c), unicode.IsDigit(c):
			return unicode.ToLower(c)
		}
		return -1
	}, heading)
	n := r.anchors[anchor]
	r.anchors[anchor]++
	if n > 0 {
		return fmt.Sprintf("%s-%d", anchor, n)
	}
	return anchor
}

func (r *reader) tableOf(node *extensionast.Table) *Table {
	var table Table
	for row := node.FirstChild(); row != nil; row = row.NextSibling() {
		if _, ok := row.(*extensionast.TableRow); !ok {
			continue
		}
		var cells []Cell
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, Cell{Text: r.textOf(cell), Codes: r.codesOf(cell)})
		}
		table.Rows = append(table.Rows, cells)
	}
	return &table
}

// textOf returns the text of a node without its marks.
func (r *reader) textOf(node ast.Node) string {
	var b strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.Text:
			b.Write(child.Segment.Value(r.source))
		case *ast.String:
			b.Write(child.Value)
		default:
			b.WriteString(r.textOf(child))
		}
	}
	return b.String()
}

// codesOf returns the code below a node. In a table, \| stands for a bar.
func (r *reader) codesOf(node ast.Node) []string {
	var codes []string
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		if _, ok := child.(*ast.CodeSpan); ok {
			codes = append(codes, strings.ReplaceAll(r.textOf(child), `\|`, "|"))
			continue
		}
		codes = append(codes, r.codesOf(child)...)
	}
	return codes
}

func (r *reader) linesOf(node ast.Node) string { return string(node.Lines().Value(r.source)) }

// lineOf returns the line of a node in the file, or of its block.
func (r *reader) lineOf(node ast.Node) int {
	for ; node != nil; node = node.Parent() {
		if node.Type() == ast.TypeBlock && node.Lines().Len() > 0 {
			return 1 + strings.Count(string(r.source[:node.Lines().At(0).Start]), "\n")
		}
	}
	return 1
}

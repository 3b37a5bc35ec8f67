package main

import (
	"strings"
)

// page is a page of Markdown.
type page struct{ strings.Builder }

func (p *page) text(text string) { p.WriteString(text) }

func (p *page) section(title, text string) {
	p.text("\n## " + title + "\n")
	if text != "" {
		p.text("\n" + text + "\n")
	}
}

// table writes a table. An empty cell stays empty.
func (p *page) table(head []string, rows [][]string) {
	p.text("\n")
	p.row(head)
	p.text("|" + strings.Repeat("---|", len(head)) + "\n")
	for _, row := range rows {
		p.row(row)
	}
}

func (p *page) row(cells []string) {
	p.text("|")
	for _, cell := range cells {
		p.text(" " + strings.ReplaceAll(strings.ReplaceAll(cell, "\n", " "), "|", `\|`) + " |")
	}
	p.text("\n")
}

// code marks a literal text; the empty string stays empty.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// codes marks several texts, with commas between them.
func codes(texts []string) string {
	marked := make([]string, 0, len(texts))
	for _, text := range texts {
		marked = append(marked, code(text))
	}
	return strings.Join(marked, ", ")
}

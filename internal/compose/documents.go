package compose

import (
	"bytes"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Document is a document of a text.
type Document struct {
	Text []byte
	// Before is the number of lines before it.
	Before int
	// Tree is nil if webhook and agent cannot read the document.
	Tree *manifest.Tree
}

// Documents splits a text as [manifest.Decode] does.
func Documents(text []byte) []Document {
	found := []Document{{}}
	lines := 0
	for line := range bytes.Lines(text) {
		lines++
		current := &found[len(found)-1]
		switch {
		case !isSeparator(line):
			current.Text = append(current.Text, line...)
		case len(current.Text) > 0:
			found = append(found, Document{Before: lines})
		default:
			current.Before = lines
		}
	}
	found = slices.DeleteFunc(found, func(d Document) bool { return len(d.Text) == 0 })
	for i := range found {
		if tree, err := manifest.DecodeTree(found[i].Text); err == nil {
			found[i].Tree = tree
		}
	}
	return found
}

// isSeparator reports whether a line only separates documents.
func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	rest = bytes.TrimSpace(rest)
	return ok && (len(rest) == 0 || rest[0] == '#')
}

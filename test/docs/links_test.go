package docs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every link to a file of the repository, and to a heading, leads there.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		for _, link := range page.Links {
			if strings.Contains(link.To, "://") || strings.HasPrefix(link.To, "mailto:") {
				continue
			}
			if err := follow(page.Path, link.To); err != nil {
				t.Errorf("%s:%d: the link to %s leads nowhere: %v", page.Path, link.Line, link.To, err)
			}
		}
	}
}

// follow follows a link of a page.
func follow(from, to string) error {
	file, anchor, hasAnchor := strings.Cut(to, "#")
	path := from
	if file != "" {
		path = filepath.Join(filepath.Dir(from), file)
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	if !hasAnchor {
		return nil
	}
	if filepath.Ext(path) != ".md" {
		return errors.New("only pages have anchors")
	}
	page, err := Read(path)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(page.Sections, func(s Section) bool { return s.Anchor == anchor }) {
		return fs.ErrNotExist
	}
	return nil
}

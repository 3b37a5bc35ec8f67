package tosca

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

const (
	// metadata is the file that names the template.
	metadata = "TOSCA-Metadata/TOSCA.meta"
	// entryKey is the key by which it does.
	entryKey = "Entry-Definitions"
)

// bundle is an archive, packed or not.
type bundle struct {
	// top are the names of the files that are in no folder.
	top  []string
	open func(name string) ([]byte, error)
}

// translate finds the template: the one that the metadata names, or else the only
// one that is in no folder.
func (b *bundle) translate() ([]any, error) {
	t := newTranslation(b.open)
	text, err := b.open(metadata)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		entry, err := b.onlyTemplate()
		if err != nil {
			return nil, err
		}
		t.bare = true
		return t.translate(entry)
	case err != nil:
		return nil, notRead(metadata, err)
	}
	entry, err := entryOf(text)
	if err != nil {
		return nil, err
	}
	return t.translate(entry)
}

func (b *bundle) onlyTemplate() (string, error) {
	var templates []string
	for _, name := range b.top {
		if extension := path.Ext(name); extension == ".yaml" || extension == ".yml" {
			templates = append(templates, name)
		}
	}
	if len(templates) != 1 {
		return "", &Error{Message: fmt.Sprintf("the archive has no %s, so it should contain only one root level yaml file. Found %d: name the template by a line %q there",
			metadata, len(templates), entryKey+": FILE")}
	}
	return templates[0], nil
}

// entryOf gives the template that the metadata names. They are lines of keys and
// values, in blocks: other keys may be there more than once.
func entryOf(text []byte) (string, error) {
	entry := ""
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		if !bytes.HasPrefix(line, []byte(entryKey+":")) {
			continue
		}
		tree, err := manifest.DecodeTree(line)
		if err != nil || entry != "" {
			return "", &Error{File: metadata, Message: entryKey + " is there twice, or is no text: write one line with it"}
		}
		if entry = (&place{Tree: tree}).field(entryKey).text(); entry == "" {
			break
		}
	}
	if entry == "" {
		return "", &Error{File: metadata, Message: fmt.Sprintf("missing required field %s: add a line %q", entryKey, entryKey+": FILE")}
	}
	name, problem := resolve("", entry)
	if problem != "" {
		return "", &Error{File: metadata, Path: entryKey, Message: problem}
	}
	return name, nil
}

// openFS gives the files of an unpacked archive.
func openFS(fsys fs.FS) (*bundle, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, &Error{Message: "read the folder: " + oneLine(err), cause: err}
	}
	b := &bundle{open: func(name string) ([]byte, error) { return readFS(fsys, name) }}
	for _, entry := range entries {
		if !entry.IsDir() {
			b.top = append(b.top, entry.Name())
		}
	}
	return b, nil
}

func readFS(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Lstat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{File: name, Message: "no regular file: neither links nor folders are read"}
	}
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := readAll(file, name)
	return text, errors.Join(err, file.Close())
}

// readAll reads what a template may have, and not more, whatever length is said.
func readAll(from io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, manifest.MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > manifest.MaxBytes {
		return nil, &Error{File: name, Message: fmt.Sprintf("more than %d bytes: leave out what no node template needs", manifest.MaxBytes)}
	}
	return text, nil
}

// isTop tells if a file is in no folder.
func isTop(name string) bool { return !strings.Contains(name, "/") }

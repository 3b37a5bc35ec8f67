package tosca

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

const (
	// metadata is the file that names the template.
	metadata = "TOSCA-Metadata/TOSCA.meta"
	// entryKey is its key with the name.
	entryKey = "Entry-Definitions"

	maxArchiveBytes = 16 << 20
	maxEntries      = 1000

	// header is the signature of an entry in the central directory.
	header = "PK\x01\x02"
	// maxHeaders is how many headers the bytes of an archive may contain, including
	// those of archives within it. A reader allocates so many entries before it counts.
	maxHeaders = 4 * maxEntries

	// The flags of an encrypted entry.
	encrypted = 1 << 0
	strong    = 1 << 6
	masked    = 1 << 13
)

// archive is the entries of an archive by name.
type archive map[string]*zip.File

// openArchive checks all entries, and unpacks none.
func openArchive(text []byte) (archive, error) {
	if len(text) > maxArchiveBytes {
		return nil, &Error{Message: fmt.Sprintf("the archive has %d bytes; the maximum is %d", len(text), maxArchiveBytes)}
	}
	if count := bytes.Count(text, []byte(header)); count > maxHeaders {
		return nil, &Error{Message: fmt.Sprintf("the archive has %d entries, with those of archives in it: the maximum is %d", count, maxEntries)}
	}
	reader, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, &Error{Message: "no valid zip archive: " + oneLine(err)}
	}
	if len(reader.File) > maxEntries {
		return nil, &Error{Message: fmt.Sprintf("the archive has %d entries; the maximum is %d", len(reader.File), maxEntries)}
	}
	var found mistakes
	files := make(archive, len(reader.File))
	for _, entry := range reader.File {
		name := strings.TrimSuffix(entry.Name, "/")
		if problem := problemOf(entry, name); problem != "" {
			found.add(&Error{File: entry.Name, Message: problem})
			continue
		}
		if _, twice := files[name]; twice {
			found.add(&Error{File: entry.Name, Message: "two entries have this name: pack the archive again with one of them"})
		}
		files[name] = entry
	}
	return files, found.err()
}

// problemOf returns why an archive with this entry is refused, or "".
func problemOf(entry *zip.File, name string) string {
	kind := entry.Mode().Type()
	switch {
	case !utf8.ValidString(name) || hasControls(name):
		return "the name is no text: pack the archive again"
	case strings.Contains(name, `\`) || scheme.MatchString(name):
		return "the name has a backslash or a drive: pack the archive with relative names, and / between folders"
	case !fs.ValidPath(name):
		return "the name is absolute, or leads out of the archive: pack the archive with relative names"
	case entry.Flags&(encrypted|strong|masked) != 0:
		return "the entry is encrypted: pack the archive without a password"
	case kind != 0 && kind != fs.ModeDir:
		return "the entry is a link or a device: pack the archive with regular files only"
	case entry.Method != zip.Store && entry.Method != zip.Deflate:
		return fmt.Sprintf("the entry is compressed by method %d: only deflate is supported", entry.Method)
	}
	return ""
}

// read unpacks a file up to the length that a template may have.
func (a archive) read(name string) ([]byte, error) {
	entry := a[name]
	switch {
	case entry == nil:
		return nil, &Error{File: name, Message: "the archive has no such file"}
	case !entry.Mode().IsRegular():
		return nil, &Error{File: name, Message: "this is a folder of the archive, and a file is wanted"}
	}
	file, err := entry.Open()
	if err != nil {
		return nil, damaged(name, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, MaxBytes+1)) // whatever length the entry says
	closed := file.Close()
	if err == nil && len(text) > MaxBytes {
		return nil, &Error{File: name, Message: fmt.Sprintf("more than %d bytes: leave out what no node template needs", MaxBytes)}
	}
	if err := errors.Join(err, closed); err != nil {
		return nil, damaged(name, err)
	}
	return text, nil
}

func damaged(name string, err error) error {
	return &Error{File: name, Message: "the archive is damaged, or has wrong data about this file: " + oneLine(err)}
}

// template returns the name of the template: the one in the metadata, or in a bare
// archive, which has no metadata, the only one that is in no folder.
func (a archive) template() (name string, bare bool, err error) {
	if a[metadata] != nil {
		name, err = a.entry()
		return name, false, err
	}
	var found []string
	for name, file := range a {
		if extension := path.Ext(name); path.Dir(name) == "." && file.Mode().IsRegular() && (extension == ".yaml" || extension == ".yml") {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		return "", true, &Error{Message: fmt.Sprintf("the archive has no %s, so it should contain only one root level yaml file. Found %d: name the template by a line %q there",
			metadata, len(found), entryKey+": FILE")}
	}
	return found[0], true, nil
}

// entry returns the template that the metadata name. The metadata are blocks of lines
// with keys and values, in which other keys may repeat.
func (a archive) entry() (string, error) {
	text, err := a.read(metadata)
	if err != nil {
		return "", err
	}
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

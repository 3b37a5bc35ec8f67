package tosca

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// headers are the signatures of those entries of the central directory that are
// looked for.
const headers = "PK\x01\x02"

// maxHeaders is how many of them may be anywhere in an archive, also in those within
// it: so many are read before they can be counted.
const maxHeaders = 4 * maxEntries

// flags of an entry.
const (
	encrypted = 1 << 0
	strong    = 1 << 6
	masked    = 1 << 13
)

// openArchive looks at all entries, and unpacks none.
func openArchive(archive []byte) (*bundle, error) {
	if len(archive) > maxArchiveBytes {
		return nil, &Error{Message: fmt.Sprintf("the archive has %d bytes, and at most %d are possible", len(archive), maxArchiveBytes)}
	}
	if count := bytes.Count(archive, []byte(headers)); count > maxHeaders {
		return nil, &Error{Message: fmt.Sprintf("the archive has %d entries, with those of archives in it: at most %d are possible", count, maxEntries)}
	}
	reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, &Error{Message: "no valid zip archive: " + oneLine(err)}
	}
	if len(reader.File) > maxEntries {
		return nil, &Error{Message: fmt.Sprintf("the archive has %d entries, and at most %d are possible", len(reader.File), maxEntries)}
	}
	return index(reader.File)
}

// index gives the files of an archive by their names.
func index(entries []*zip.File) (*bundle, error) {
	var found mistakes
	files := make(map[string]*zip.File, len(entries))
	b := &bundle{open: func(name string) ([]byte, error) { return readEntry(files, name) }}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name, "/")
		if problem := problemOf(entry, name); problem != "" {
			found.add(&Error{File: entry.Name, Message: problem})
			continue
		}
		if _, twice := files[name]; twice {
			found.add(&Error{File: entry.Name, Message: "there are two entries of this name: nobody knows which is meant"})
		}
		files[name] = entry
		if isTop(name) && entry.Mode().IsRegular() {
			b.top = append(b.top, name)
		}
	}
	return b, found.err()
}

// problemOf tells why an entry makes the archive one that is not looked into.
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

// readEntry unpacks a file, as far as it can be needed.
func readEntry(files map[string]*zip.File, name string) ([]byte, error) {
	entry := files[name]
	switch {
	case entry == nil:
		return nil, &Error{File: name, Message: "the archive has no such file", cause: fs.ErrNotExist}
	case !entry.Mode().IsRegular():
		return nil, &Error{File: name, Message: "this is a folder of the archive, and a file is wanted"}
	}
	file, err := entry.Open()
	if err != nil {
		return nil, unpack(name, err)
	}
	text, err := readAll(file, name)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, unpack(name, err)
	}
	return text, nil
}

func unpack(name string, err error) error {
	mistake := new(Error)
	if errors.As(err, &mistake) {
		return mistake
	}
	return &Error{File: name, Message: "the archive is damaged, or lies about this file: " + oneLine(err)}
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// entry is a file of an archive: its content, or the path of a file with the content.
type entry struct {
	name    string
	mode    int64
	content []byte
	from    string
}

// entriesOf returns the files of an image: the commands and the certificate authorities.
func entriesOf(folder string) []entry {
	entries := []entry{{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: authorities()}}
	for _, command := range inImage {
		entries = append(entries, entry{name: command, mode: 0o755, from: filepath.Join(folder, command)})
	}
	return entries
}

// authorities returns the public ones, as Mozilla has them. The agent trusts them where a
// hub, or the server of an Application's URL, has no authority of its own. Authorities
// that are trusted with a condition are left out: a file of certificates cannot express it.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.Bytes()
}

// pack writes files and their folders as a tar archive. The archive does not depend on
// the time, the machine or the user that made it.
func pack(out io.Writer, entries []entry, at time.Time) error {
	writer := tar.NewWriter(out)
	for _, folder := range foldersOf(entries) {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: at, Format: tar.FormatUSTAR}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
	}
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for _, e := range sorted {
		if err := e.write(writer, at); err != nil {
			return err
		}
	}
	return writer.Close()
}

func foldersOf(entries []entry) []string {
	var folders []string
	for _, e := range entries {
		for folder := path.Dir(e.name); folder != "."; folder = path.Dir(folder) {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders) // each after its parent
	return slices.Compact(folders)
}

func (e entry) write(writer *tar.Writer, at time.Time) error {
	content := io.Reader(bytes.NewReader(e.content))
	size := int64(len(e.content))
	if e.from != "" {
		file, err := os.Open(e.from)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // it was only read
		info, err := file.Stat()
		if err != nil {
			return err
		}
		content, size = file, info.Size()
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: size, ModTime: at, Format: tar.FormatUSTAR}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(writer, content)
	return err
}

// packGzip returns the entries as a compressed archive.
func packGzip(entries []entry, at time.Time) ([]byte, error) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := pack(writer, entries, at); err != nil {
		return nil, err
	}
	err := writer.Close()
	return packed.Bytes(), err
}

// packFile packs into a file.
func packFile(name string, entries []entry, at time.Time) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := pack(file, entries, at); err != nil {
		_ = file.Close() // the first error matters more
		return err
	}
	return file.Close()
}

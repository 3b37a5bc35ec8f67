package kubectl

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/krake-observer/krake-observer/test/docs"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/kubectl/session"
)

// ofPages has further commands of sessions:
//
//	block PAGE ANCHOR FILE
//	zip ARCHIVE FILE...
//	shell COMMAND
//
// The first writes the first block of YAML below a heading of a page into a file. The
// second makes an archive of files. The third runs a command with pipes.
var ofPages = map[string]session.Command{"block": block, "zip": zipped, "shell": shell}

// The commands of the pages run unchanged, each page in a separate session.
func TestPages(t *testing.T) {
	kit.Long(t, "each page of the documentation")
	play(t, "", sessionsOf(t, "testdata/pages")...)
}

// The API server with webhook and policies accepts all YAML of the pages: each block is a
// whole manifest with known fields, unless it is fenced as a fragment.
func TestEveryManifest(t *testing.T) {
	kit.Long(t, "each manifest of the documentation")
	pages, err := docs.ReadAll("../..")
	kit.Must(t, err)
	count := 0
	for _, page := range pages {
		for _, section := range page.Sections {
			for _, part := range section.Parts {
				if part.Block == nil || !part.Block.Is("yaml") || part.Block.Is("fragment") {
					continue
				}
				count++
				file := filepath.Join(t.TempDir(), "file.yaml")
				kit.Must(t, os.WriteFile(file, []byte(part.Block.Text), 0o600))
				if text, err := try(t.Context(), "create", "--dry-run=server", "--validate=strict", "-f", file); err != nil {
					t.Errorf("%s:%d: %s\nmend it, or fence it as yaml fragment if it is not to be whole", page.Path, part.Block.Line, text)
				}
			}
		}
	}
	if count == 0 {
		t.Error("there are no manifests")
	}
}

// block writes a block of a page into a file.
func block(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: block PAGE ANCHOR FILE")
	}
	page, err := docs.Read(filepath.Join("..", "..", args[0]))
	ts.Check(err)
	for _, section := range page.Sections {
		at := slices.IndexFunc(section.Parts, func(p docs.Part) bool { return p.Block != nil && p.Block.Is("yaml") })
		if section.Anchor == args[1] && at >= 0 {
			ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(section.Parts[at].Block.Text), 0o600))
			return
		}
	}
	ts.Fatalf("%s has no block of YAML below #%s", args[0], args[1])
}

// zipped makes an archive.
func zipped(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: zip ARCHIVE FILE...")
	}
	file, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	archive := zip.NewWriter(file)
	for _, name := range args[1:] {
		entry, err := archive.Create(name)
		ts.Check(err)
		_, err = entry.Write([]byte(ts.ReadFile(name)))
		ts.Check(err)
	}
	ts.Check(errors.Join(archive.Close(), file.Close()))
}

// shell runs a command with pipes, all of which must succeed.
func shell(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: shell COMMAND")
	}
	ts.Check(ts.Exec("bash", "-o", "pipefail", "-c", args[0]))
}

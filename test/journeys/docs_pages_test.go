package journeys

import (
	"archive/zip"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/docs"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/kubectl/session"
)

// The commands of the pages run unchanged, each page in a separate script below docs. In
// addition to the commands of other journeys there are
//
//	block PAGE ANCHOR FILE
//	zip ARCHIVE FILE...
//	shell COMMAND
//
// The first writes the first block of YAML below a heading of a page into a file. The
// second makes an archive of files. The third runs a command with pipes.
func TestPages(t *testing.T) {
	kit.Long(t, "each page of the documentation")
	files, err := filepath.Glob("docs/*.txtar")
	kit.Must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no pages")
	}
	installed, err := installation.InstallWith(t.Context(), server.Cluster, installation.Options{Overlay: "habitat", Habitats: 1}, os.Stderr)
	kit.Must(t, err)
	kit.Must(t, installed.Look())
	t.Cleanup(func() {
		// The Habitat controllers would end without their rights.
		if err := installed.StopHabitat(); err != nil {
			t.Error(err)
		}
		server.Kubectl(t, "delete", "-k", folderOf(installed))
		server.Kubectl(t, "delete", "customresourcedefinition", "habitats.habitat.sh") // which the process has registered
		kit.Must(t, errors.Join(installed.StopAgent(), installed.StopWebhook()))
	})
	t.Run("EveryManifest", everyManifest)
	t.Run("of", func(t *testing.T) {
		session.Run(t, files, *update, func(script *testscript.Env) error {
			return errors.Join(
				makeNamespace(script, ""),
				os.CopyFS(filepath.Join(script.WorkDir, "manifests"), manifests.Files),
				session.Home(script, server.Cluster, "", filepath.Join(server.Dir(), "installation")),
			)
		}, map[string]session.Command{"block": block, "zip": zipped, "shell": shell})
	})
}

// everyManifest sends all YAML of the pages to the API server with webhook and
// policies: each block is a whole manifest with known fields, unless it is fenced as a
// fragment.
func everyManifest(t *testing.T) {
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
	const least = 15
	if count < least {
		t.Errorf("%d manifests are too few", count)
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

// An API server without the installation accepts each documented kubectl apply of the
// repository, and each kubectl delete.
func TestInstallCommands(t *testing.T) {
	kit.Long(t, "each installation of the documentation")
	pages, err := docs.ReadAll("../..")
	kit.Must(t, err)
	tried := map[string]bool{}
	for _, page := range pages {
		commands, err := page.Commands()
		kit.Must(t, err)
		for _, command := range commands {
			if docs.IsInstallation(command) && !tried[command.String()] {
				tried[command.String()] = true
				t.Run(strings.Join(command.Words[2:], " "), func(t *testing.T) { applyAndDelete(t, command.Words[1:]) })
			}
		}
	}
	if len(tried) < 5 {
		t.Errorf("%d commands are too few", len(tried))
	}
}

// applyAndDelete runs the given kubectl apply, and its deletion, in the root of the
// repository.
func applyAndDelete(t *testing.T, arguments []string) {
	run := func(arguments ...string) {
		t.Helper()
		command := exec.CommandContext(context.WithoutCancel(t.Context()), server.Cluster.Kubectl(), append(arguments, "--kubeconfig", server.Kubeconfig())...)
		command.Dir = filepath.Join("..", "..")
		if text, err := command.CombinedOutput(); err != nil || strings.Contains(string(text), "Warning") {
			t.Errorf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, text)
		}
	}
	if at := slices.Index(arguments, "--namespace"); at >= 0 {
		run("create", "namespace", arguments[at+1])
		t.Cleanup(func() { run("delete", "namespace", arguments[at+1]) })
	}
	run(arguments...)
	run(append([]string{"delete"}, arguments[1:]...)...)
}

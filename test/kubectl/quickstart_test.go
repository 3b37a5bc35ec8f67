package kubectl

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/test/docs"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/kubectl/session"
)

// docs/quick-start.md is a session: each command that is fenced as console runs, in
// this order, and prints the documented output.
func TestQuickStart(t *testing.T) {
	kit.Long(t, "the whole quick start")
	page, err := docs.Read("../../docs/quick-start.md")
	kit.Must(t, err)
	kit.LookAtSources(t)
	reader := newReader(t, folderOf(installed))
	commands := 0
	for _, section := range page.Sections {
		for _, part := range section.Parts {
			switch {
			case part.Block == nil:
			case part.Block.Is("yaml"):
				reader.save(part.Block)
			case part.Block.Is("console"):
				commands += reader.play(part.Block)
			case !part.Block.Fenced:
				commands += reader.run(part.Block)
			}
		}
	}
	if commands < 20 {
		t.Errorf("%d commands were run, which is not the page", commands)
	}
}

// reader is a user who follows a page, in a separate folder.
type reader struct {
	*testing.T
	folder      string
	environment []string
}

// newReader returns the administrator of the cluster, with kubectl, the plugin, and the
// installed overlay as manifests/overlays/default. It has the files of the repository, with the
// address of the processes that stand in for Pods.
func newReader(t *testing.T, installed string) *reader {
	t.Helper()
	r := &reader{T: t, folder: t.TempDir()}
	config, err := clientcmd.LoadFromFile(hub.Kubeconfig())
	kit.Must(t, err)
	kit.Must(t, clientcmd.ResolveLocalPaths(config))
	kubeconfig := filepath.Join(r.folder, ".kube", "config")
	kit.Must(t, clientcmd.WriteToFile(*config, kubeconfig))
	overlay := filepath.Join(r.folder, "manifests", "overlays", "default")
	kit.Must(t, os.MkdirAll(overlay, 0o750))
	path, err := filepath.Rel(overlay, installed)
	kit.Must(t, err)
	kit.Must(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte("resources: ["+path+"]\n"), 0o600))
	kubectl, err := exec.LookPath(hub.Cluster.Kubectl())
	kit.Must(t, err)
	folders := []string{filepath.Dir(kubectl), plugin(), os.Getenv("PATH")}
	r.environment = []string{
		"HOME=" + r.folder, "KUBECONFIG=" + kubeconfig, "KUBECACHEDIR=" + filepath.Join(hub.Dir(), "kubectl-cache"),
		"PATH=" + strings.Join(folders, string(os.PathListSeparator)),
	}
	return r
}

// save saves a block whose fence has a file name.
func (r *reader) save(block *docs.Block) {
	r.Helper()
	for _, word := range block.Info {
		if filepath.Ext(word) != ".yaml" {
			continue
		}
		kit.Must(r.T, os.WriteFile(filepath.Join(r.folder, word), []byte(block.Text), 0o600))
	}
}

// run runs the commands of kubectl in a block without output. The other commands make a
// cluster and programs, which exist already.
func (r *reader) run(block *docs.Block) (count int) {
	r.Helper()
	for line := range strings.Lines(block.Text) {
		if strings.HasPrefix(line, "kubectl ") {
			if text, err := r.shell(line); err != nil {
				r.Fatalf("line %d: %s%v\n%s", block.Line, line, err, text)
			}
			count++
		}
	}
	return count
}

// play runs the commands of a block, and compares what they print.
func (r *reader) play(block *docs.Block) (count int) {
	r.Helper()
	for _, text := range strings.Split("\n"+block.Text, "\n$ ")[1:] {
		command, want, _ := strings.Cut(text, "\n")
		r.expect(block.Line, command, strings.TrimSuffix(want, "\n"))
		count++
	}
	return count
}

// looks matches commands that change nothing, so that they can be repeated until they
// print the expected output: the agent's work takes a moment.
var looks = regexp.MustCompile(`^kubectl (get|wait|krake (get|describe|diff|blame|history|schema)) `)

// expect runs a command, and repeats it until it prints this, if it may be repeated.
func (r *reader) expect(line int, command, want string) {
	r.Helper()
	var got string
	run := func() (bool, error) {
		text, err := r.shell(command)
		got = strings.TrimSuffix(text, "\n")
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 1 && strings.HasPrefix(command, "kubectl krake diff ") {
			err = nil // it exits with an error if there is a difference
		}
		if err != nil {
			return false, fmt.Errorf("%w: %s", err, text)
		}
		return alike(got) == alike(want), nil
	}
	yes, err := run()
	if looks.MatchString(command) && !yes && err == nil {
		err = kit.Wait(r.Context(), "it prints that", run)
	} else if !yes && err == nil {
		err = errors.New("it prints something else")
	}
	if err != nil {
		r.Errorf("block of line %d: $ %s\n%v, -want +got\n%s\n--- as it is\n%s", line, command, err, cmp.Diff(alike(want), alike(got)), got)
	}
}

// shell returns the output of a command in a shell.
func (r *reader) shell(command string) (string, error) {
	var printed bytes.Buffer
	shell := exec.CommandContext(r.Context(), "sh", "-c", command)
	shell.Dir, shell.Env = r.folder, r.environment
	shell.Stdout, shell.Stderr = &printed, &printed
	err := shell.Run()
	return printed.String(), err
}

// nodePort differs each time.
var nodePort = regexp.MustCompile(`\b3[0-2]\d{3}\b`)

// alike removes what differs between runs.
func alike(text string) string { return nodePort.ReplaceAllString(session.Table(text), "PORT") }

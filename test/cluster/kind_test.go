package cluster

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/check"
)

// standInProgram records its calls, and makes the files that later calls need. The file
// "fail" beside it has the first words of the calls that fail.
const standInProgram = `#!/bin/sh
here=$(dirname "$0")
call="$(basename "$0") $*"
echo "$call" >> "$here/calls"
while read -r words; do
	case "$call" in "$words"*) echo "first line" >&2; echo "it says no" >&2; exit 1 ;; esac
done < "$here/fail"
case "$call" in "kind create"*)
	while [ "$1" != --kubeconfig ]; do shift; done
	cp "$here/kubeconfig" "$2"
esac
`

// standIns puts stand-ins for kind and docker on the PATH. The given calls fail.
func standIns(t *testing.T, fail ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	kubeconfig := `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}],
users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`
	files := map[string]string{"kind": standInProgram, "docker": standInProgram, "fail": strings.Join(append(fail, ""), "\n"), "kubeconfig": kubeconfig}
	for name, text := range files {
		check.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700))
	}
	t.Setenv("PATH", folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("KRAKE_E2E_KUBECONFIG", "")
	t.Setenv("E2E_TIER", "")
	t.Setenv("KRAKE_KIND_NODE_IMAGE", "example.org/node:v1")
	return folder
}

// wereMade fails the test unless these calls were made. NAME stands for the name of the
// cluster, and FOLDER for paths that differ between runs.
func wereMade(t *testing.T, folder string, want []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "calls"))
	check.Must(t, err)
	root, err := checkout(t.Context())
	check.Must(t, err)
	plain := regexp.MustCompile(`krake-e2e-\d{6}`).ReplaceAllString(strings.TrimSpace(string(text)), "NAME")
	plain = regexp.MustCompile(`/\S*/krake-cluster-\d+/`).ReplaceAllString(plain, "FOLDER/")
	if diff := cmp.Diff(want, strings.Split(strings.ReplaceAll(plain, root, "CHECKOUT"), "\n")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// The calls of a run on kind, in order.
var (
	asking   = []string{"docker info", "docker image inspect example.org/node:v1"}
	building = "docker build --tag krake-observer/krake-observer:e2e CHECKOUT"
	creating = "kind create cluster --name NAME --image example.org/node:v1 --kubeconfig FOLDER/kind.kubeconfig --wait 120s"
	loading  = "kind load docker-image krake-observer/krake-observer:e2e --name NAME"
	deleting = "kind delete cluster --name NAME --kubeconfig FOLDER/kind.kubeconfig"
)

func sequence(some ...string) []string { return slices.Concat(asking, some) }

// Kind is preferred where Docker answers: the image is built, and loaded into a cluster
// that is deleted with the tests. The stand-ins record the calls; only a real kind
// could show that it accepts them.
func TestKind(t *testing.T) {
	folder := standIns(t)
	var log strings.Builder
	c, err := Open(t.Context(), Options{Pods: true, Log: &log})
	check.Must(t, err)
	if c.tier != "kind" || c.Image() != "krake-observer/krake-observer:e2e" || !c.HasKubelet() || c.URL() != "https://192.0.2.1:6443" {
		t.Errorf("it is %s with image %q at %s", c.tier, c.Image(), c.URL())
	}
	if first, _, _ := strings.Cut(log.String(), "\n"); first != "cluster: kind: Pods run; its audit log cannot be read" {
		t.Errorf("the first line is %q", first)
	}
	wereMade(t, folder, sequence(building, creating, loading))
	for range 2 { // the second call finds nothing to delete
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
	wereMade(t, folder, sequence(building, creating, loading, deleting))
}

// A failure is reported, and deletes what was made before it. No other cluster replaces
// the failed one.
func TestKindFails(t *testing.T) {
	for _, c := range []struct {
		fail []string
		want []string
	}{
		{[]string{"docker build"}, sequence(building)},
		{[]string{"kind create"}, sequence(building, creating, deleting)},
		{[]string{"kind load"}, sequence(building, creating, loading, deleting)},
		{[]string{"kind load", "kind delete"}, sequence(building, creating, loading, deleting)},
	} {
		t.Run(strings.Join(c.fail, ", "), func(t *testing.T) {
			folder := standIns(t, c.fail...)
			_, err := Open(t.Context(), Options{Pods: true, Log: io.Discard})
			if err == nil {
				t.Fatal("it is said to have started")
			}
			for _, call := range c.fail {
				if !strings.Contains(err.Error(), call) || !strings.Contains(err.Error(), "it says no") {
					t.Errorf("%s is not said: %v", call, err)
				}
			}
			wereMade(t, folder, c.want)
			if left, err := filepath.Glob(filepath.Join(os.TempDir(), "krake-cluster-*", "kind.kubeconfig")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

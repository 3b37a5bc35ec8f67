package uninstall

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// server is the cluster that all tests share, one after the other: each restores its
// state. No other suite uses it, because the installation is cluster-wide.
var server *kit.Plane

func TestMain(m *testing.M) {
	kit.Suite{
		Name: "uninstall",
		Start: func(ctx context.Context) (err error) {
			server, err = kit.StartPlane(ctx, cluster.Options{})
			return err
		},
		Stop: func() error { return server.Stop() },
	}.Main(m)
}

// krake runs the plugin of the installation, and returns its output and exit status.
func krake(t *testing.T, arguments ...string) (text string, status int) {
	t.Helper()
	text, err := try(t, filepath.Join(server.Dir(), "installation", "kubectl-krake"), arguments...)
	exit, failed := err.(*exec.ExitError) //nolint:errorlint // of this very command
	switch {
	case failed:
		return text, exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return text, 0
}

func try(t *testing.T, program string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, append([]string{"--kubeconfig", server.Kubeconfig()}, arguments...)...)
	text, err := command.CombinedOutput()
	return string(text), err
}

// checkGone fails if anything of an installation remains.
func checkGone(t *testing.T) {
	t.Helper()
	const kinds = "namespaces,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations," +
		"validatingadmissionpolicies,validatingadmissionpolicybindings,priorityclasses,customresourcedefinitions"
	left := server.Kubectl(t, "get", kinds, "-l", "app.kubernetes.io/part-of=krake-observer", "-o", "name", "--ignore-not-found")
	for _, namespace := range []string{"krake-system", "krake-agents"} {
		left += server.Kubectl(t, "get", "namespace", namespace, "-o", "name", "--ignore-not-found")
	}
	if left != "" {
		t.Errorf("the cluster still has\n%s", left)
	}
}

// rendered returns a file with the output of make install.yaml.
func rendered(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "run", "../../manifests/render")
	var problems strings.Builder
	command.Stderr = &problems
	text, err := command.Output()
	if err != nil {
		t.Fatalf("render: %v\n%s", err, &problems)
	}
	path := filepath.Join(t.TempDir(), "install.yaml")
	kit.Must(t, os.WriteFile(path, text, 0o600))
	return path
}

package journeys

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/kubectl/session"
)

var update = flag.Bool("update", false, "write what is said into the journeys")

// server is the cluster that all tests share, one after the other: each restores its
// state. No other suite uses it, because the installation is cluster-wide.
var server *kit.Plane

func TestMain(m *testing.M) {
	kit.Suite{
		Name: "journeys",
		Start: func(ctx context.Context) (err error) {
			server, err = kit.StartPlane(ctx, cluster.Options{PretendKubelet: true})
			return err
		},
		Stop: func() error { return server.Stop() },
	}.Main(m)
}

// leaving is the journey that removes the installation.
const leaving = "uninstall.txtar"

// The journeys of users with Applications.
func TestJourneys(t *testing.T) {
	files, err := filepath.Glob("*.txtar")
	kit.Must(t, err)
	files = slices.DeleteFunc(files, func(name string) bool {
		return name == leaving || testing.Short() && name != "first-hour.txtar" && name != "wrong-schema.txtar"
	})
	if len(files) == 0 {
		t.Fatal("there are no journeys")
	}
	installed := installAndDelete(t)
	travel(t, installed, "edith", files...)
}

// The last journey of an administrator: nothing of the installation remains, and
// nothing blocks.
func TestUninstall(t *testing.T) {
	installed := install(t)
	travel(t, installed, "", leaving)
	const kinds = "namespaces,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations," +
		"validatingadmissionpolicies,validatingadmissionpolicybindings,priorityclasses,customresourcedefinitions"
	if left := server.Kubectl(t, "get", kinds, "-l", "app.kubernetes.io/part-of=krake-observer", "-o", "name"); left != "" {
		t.Errorf("the cluster still has\n%s", left)
	}
}

// install runs webhook and agent until the test is over.
func install(t *testing.T) *installation.Installation {
	t.Helper()
	installed, err := installation.InstallWith(t.Context(), server.Cluster, installation.Options{Overlay: "default"}, os.Stderr)
	kit.Must(t, err)
	kit.Must(t, installed.Look())
	t.Cleanup(func() { kit.Must(t, errors.Join(installed.StopAgent(), installed.StopWebhook())) })
	return installed
}

// installAndDelete is [install], and deletes the installation when the test is over.
func installAndDelete(t *testing.T) *installation.Installation {
	t.Helper()
	installed := install(t)
	t.Cleanup(func() { server.Kubectl(t, "delete", "-k", folderOf(installed)) })
	return installed
}

// folderOf returns the folder that was applied.
func folderOf(installed *installation.Installation) string {
	return filepath.Join(installed.Manifests(), "run")
}

// travel runs journeys in parallel, each in a separate namespace, and returns when they
// are over.
func travel(t *testing.T, installed *installation.Installation, user string, files ...string) {
	t.Helper()
	plugin := filepath.Join(server.Dir(), "installation") // built with the other commands
	completion, err := filepath.Abs("../../cmd/kubectl-krake")
	kit.Must(t, err)
	t.Run("of", func(t *testing.T) {
		session.Run(t, files, *update, func(script *testscript.Env) error {
			if err := makeNamespace(script, user); err != nil {
				return err
			}
			script.Setenv("INSTALLED", folderOf(installed))
			return session.Home(script, server.Cluster, user, plugin, completion)
		}, nil)
	})
}

// makeNamespace creates the namespace of a journey, in which its user has rights. If it
// still exists when the journey is over, it is removed.
func makeNamespace(script *testscript.Env, user string) error {
	ctx := context.Background() // the script has none
	name := session.Namespace(script)
	if err := newNamespace(ctx, name, user); err != nil {
		return err
	}
	script.Defer(func() {
		if text, err := try(ctx, "delete", "namespace", name, "--ignore-not-found"); err != nil {
			script.T().Fatal(text)
		}
	})
	return nil
}

// newNamespace creates a namespace, in which a user has rights if one is named.
func newNamespace(ctx context.Context, name, user string) error {
	if text, err := try(ctx, "create", "namespace", name); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	if user == "" {
		return nil
	}
	if text, err := try(ctx, "create", "rolebinding", user, "--clusterrole=edit", "--user="+user, "--namespace="+name); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return kit.Wait(ctx, user+" may write", func() (bool, error) {
		answer, err := try(ctx, "auth", "can-i", "create", "services", "--as="+user, "--namespace="+name)
		// The exit status also reports a refusal.
		var no *exec.ExitError
		if errors.As(err, &no) && strings.HasPrefix(answer, "no") {
			err = nil
		}
		return strings.HasPrefix(answer, "yes"), err
	})
}

// checkNoDiff fails if kubectl krake diff prints anything in a namespace.
func checkNoDiff(t *testing.T, namespace string, arguments ...string) {
	t.Helper()
	diff := exec.CommandContext(t.Context(), filepath.Join(server.Dir(), "installation", "kubectl-krake"),
		append([]string{"diff", "--kubeconfig", server.Kubeconfig(), "--cache-dir", t.TempDir(), "--namespace", namespace}, arguments...)...)
	if said, err := diff.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("kubectl krake diff %s: %v\n%s", strings.Join(arguments, " "), err, said)
	}
}

// try runs kubectl as the administrator.
func try(ctx context.Context, arguments ...string) (string, error) {
	return kit.TryKubectl(ctx, server.Cluster, "", arguments...)
}

package kubectl

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/krake-observer/krake-observer/internal/cli"
	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/kubectl/session"
)

var update = flag.Bool("update", false, "write what kubectl says into the sessions")

// What all sessions share. No other suite uses this cluster, because the installation
// is cluster-wide. The tests of uninstall_test.go, the last file, remove the installation.
var (
	hub       *kit.Plane
	installed *installation.Installation
)

func TestMain(m *testing.M) {
	kit.Suite{
		Name:   "kubectl",
		AtOnce: 4,
		Start:  start,
		Logs:   func() []string { return installed.Logs() },
		Stop:   func() error { return hub.Stop() },
	}.Main(m)
}

func start(ctx context.Context) (err error) {
	if hub, err = kit.StartPlane(ctx, cluster.Options{PretendKubelet: true}); err != nil {
		return err
	}
	installed, err = installation.InstallWith(ctx, hub.Cluster, installation.Options{Overlay: "habitat", Habitats: 1}, os.Stderr)
	return err
}

// What users of kubectl and kubectl krake do, and the text that they read.
func TestSessions(t *testing.T) {
	files := sessionsOf(t, "testdata")
	if testing.Short() {
		sample := []string{
			"create.txtar", "delete.txtar", "edit.txtar", "first-hour.txtar", "habitat.txtar", "hold.txtar", "refusals.txtar", "rights.txtar", "wrong-schema.txtar",
		}
		files = slices.DeleteFunc(files, func(name string) bool { return !slices.Contains(sample, filepath.Base(name)) })
	}
	play(t, edith, files...)
}

// sessionsOf returns the sessions of a folder.
func sessionsOf(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.txtar")
	kit.Must(t, err)
	if len(files) == 0 {
		t.Fatalf("there are no sessions in %s", folder)
	}
	return files
}

// play runs sessions of a user in parallel, each in a separate namespace, and returns when
// they are over. The administrator is the user without a name.
func play(t *testing.T, user string, files ...string) {
	t.Helper()
	kit.LookAtSources(t)
	completion, err := filepath.Abs("../../cmd/kubectl-krake")
	kit.Must(t, err)
	t.Run("of", func(t *testing.T) {
		session.Run(t, files, *update, func(script *testscript.Env) error {
			ctx := context.Background() // the script has none
			name := session.Namespace(script)
			if err := makeNamespace(ctx, name); err != nil {
				return err
			}
			script.Defer(func() {
				if err := removeNamespace(ctx, name); err != nil {
					script.T().Fatal(err)
				}
			})
			script.Setenv("INSTALLED", folderOf(installed))
			if err := os.CopyFS(filepath.Join(script.WorkDir, "manifests"), manifests.Files); err != nil {
				return err
			}
			return session.Home(script, hub.Cluster, user, plugin(), completion)
		}, ofPages)
	})
}

// folderOf returns the folder that was applied.
func folderOf(installed *installation.Installation) string {
	return filepath.Join(installed.Manifests(), "run")
}

// plugin returns the folder with kubectl-krake, which was built with the other commands.
func plugin() string { return filepath.Join(hub.Dir(), "installation") }

// krake runs a command of the plugin as the administrator. It returns the output and the messages.
func krake(t *testing.T, arguments ...string) (printed, said string) {
	t.Helper()
	streams, _, out, says := genericiooptions.NewTestIOStreams()
	command := cli.NewCommand(streams)
	command.SetArgs(append(arguments, "--kubeconfig", hub.Kubeconfig(), "--cache-dir", t.TempDir()))
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %v\n%s%s", arguments, err, out, says)
	}
	return out.String(), says.String()
}

// checkNoDiff fails if kubectl krake diff prints anything.
func checkNoDiff(t *testing.T, namespace string, arguments ...string) {
	t.Helper()
	if printed, said := krake(t, append([]string{"diff", "-n", namespace}, arguments...)...); printed+said != "" {
		t.Errorf("kubectl krake diff %v:\n%s%s", arguments, printed, said)
	}
}

// try runs kubectl as the administrator.
func try(ctx context.Context, arguments ...string) (string, error) {
	return kit.TryKubectl(ctx, hub.Cluster, "", arguments...)
}

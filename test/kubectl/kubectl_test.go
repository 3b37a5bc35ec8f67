package kubectl

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/kubectl/session"
)

var update = flag.Bool("update", false, "write what kubectl says into the sessions")

// What all sessions share. No other suite uses this cluster, because the installation
// is cluster-wide.
var (
	hub       *kit.Plane
	installed *installation.Installation
)

func TestMain(m *testing.M) {
	kit.Suite{
		Name:  "kubectl",
		Start: start,
		Logs:  func() []string { return installed.Logs() },
		Stop:  func() error { return hub.Stop() },
	}.Main(m)
}

func start(ctx context.Context) (err error) {
	if hub, err = kit.OpenPlane(ctx, cluster.Options{PretendKubelet: true}); err != nil {
		return err
	}
	installed, err = installation.InstallWith(ctx, hub.Cluster, installation.Options{Overlay: "habitat", Habitats: 1}, os.Stderr)
	return err
}

// The commands of users, and the text that they read.
func TestSessions(t *testing.T) {
	kit.Must(t, installed.Look())
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no sessions: %v", err)
	}
	if testing.Short() {
		sample := []string{"create.txtar", "delete.txtar", "edit.txtar", "habitat.txtar", "hold.txtar", "refusals.txtar", "rights.txtar", "warnings.txtar"}
		files = slices.DeleteFunc(files, func(name string) bool { return !slices.Contains(sample, filepath.Base(name)) })
	}
	session.Run(t, files, *update, begin, nil)
}

// begin creates the namespace of a session, with its users' rights, and the user's
// kubectl.
func begin(script *testscript.Env) error {
	ctx := context.Background() // the session has none
	namespace := session.Namespace(script)
	if err := makeNamespace(ctx, namespace); err != nil {
		return err
	}
	script.Defer(func() {
		if err := removeNamespace(ctx, namespace); err != nil {
			script.T().Fatal(err)
		}
	})
	return session.Home(script, hub.Cluster, edith)
}

package kubectl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/kubernetes"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/session"
)

var update = flag.Bool("update", false, "write what kubectl says into the sessions")

// environment is what all sessions share.
type environment struct {
	cluster      *cluster.Cluster
	installation *installation.Installation
	client       kubernetes.Interface // the administrator's
	kubectl      string               // the path of it
}

var env environment

func TestMain(m *testing.M) {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubectl:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	c, err := cluster.Open(ctx, cluster.Options{PretendKubelet: true})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	installed, err := installation.InstallWith(ctx, c, installation.Options{Overlay: "habitat", Habitats: 1}, os.Stderr)
	if err != nil {
		return 1, err
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return 1, err
	}
	path, err := exec.LookPath(c.Kubectl())
	if err != nil {
		return 1, fmt.Errorf("find kubectl: %w", err)
	}
	env = environment{cluster: c, installation: installed, client: client, kubectl: path}
	code = m.Run()
	if code != 0 {
		showLogs(installed.Logs())
	}
	return code, nil
}

// showLogs prints the ends of the logs: the folder is gone when the tests are.
func showLogs(paths []string) {
	const most = 8 << 10
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, "kubectl:", err)
			continue
		}
		fmt.Fprintf(os.Stderr, "--- end of %s\n", path)
		_, _ = os.Stderr.Write(text[max(0, len(text)-most):]) // best effort: the tests have failed already
	}
}

// What users type, and what they read.
func TestSessions(t *testing.T) {
	if err := env.installation.Look(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no sessions: %v", err)
	}
	if testing.Short() {
		files = slices.DeleteFunc(files, func(name string) bool { return strings.HasPrefix(filepath.Base(name), "habitat-") })
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup:               begin,
		Cmds:                session.Commands(t.Context()),
	})
}

// begin gives a session its namespace, the rights of the people in it, and a
// kubectl that is theirs.
func begin(script *testscript.Env) error {
	ctx := context.Background() // of the session there is none
	namespace := session.Namespace(script)
	if err := makeNamespace(ctx, namespace); err != nil {
		return err
	}
	script.Defer(func() {
		if err := removeNamespace(ctx, namespace); err != nil {
			script.T().Fatal(err)
		}
	})
	return session.Home(script, env.cluster, edith, filepath.Dir(env.kubectl))
}

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
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

// timeout is how long anything may take that a test waits for. It is long,
// because machines are slow, and not because anything needs it.
const timeout = 2 * time.Minute

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
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Setup:               begin,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"mask":  mask,
			"until": until,
			"soon":  soon,
			"past":  past,
			"bytes": bytesOf,
		},
	})
}

// begin gives a session its namespace, the rights of the people in it, and a
// kubectl that is theirs.
func begin(session *testscript.Env) error {
	ctx := context.Background() // of the session there is none
	namespace := namespaceOf(session.WorkDir)
	if err := makeNamespace(ctx, namespace); err != nil {
		return err
	}
	session.Defer(func() {
		if err := removeNamespace(ctx, namespace); err != nil {
			session.T().Fatal(err)
		}
	})
	config, err := clientcmd.LoadFromFile(env.cluster.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = edith
	}
	for _, one := range config.Contexts {
		one.Namespace = namespace
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	home := filepath.Join(session.WorkDir, ".home")
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	session.Setenv("HOME", home)
	session.Setenv("KUBECONFIG", kubeconfig)
	session.Setenv("NAMESPACE", namespace)
	// What the server can do is found out once, and not by each session.
	session.Setenv("KUBECACHEDIR", filepath.Join(env.cluster.Dir(), "kubectl-cache"))
	session.Setenv("PATH", filepath.Dir(env.kubectl)+string(filepath.ListSeparator)+session.Getenv("PATH"))
	return nil
}

package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

// timeout is how long anything may take that a test waits for. It is long,
// because machines are slow, and not because anything needs it.
const timeout = 60 * time.Second

// environment is what all tests share.
type environment struct {
	cluster      *cluster.Cluster
	installation installed
	client       dynamic.Interface
	// pods is the installation if it is one of Pods, or nil.
	pods *installation.Pods
}

// installed is webhook and agent: processes beside the cluster, or Pods in it.
type installed interface {
	Look() error
	LogFiles(ctx context.Context) ([]string, error)
	MetricsURLs(ctx context.Context) ([]string, error)
	agents
}

// agents are the agents of an installation, and others that a test starts.
type agents interface {
	StopAgent(indices ...int) error
	StartAgent(ctx context.Context) error
	AgentKubeconfig(ctx context.Context, name string) (string, error)
	RunAgent(name, kubeconfig string, arguments ...string) (*cluster.Process, error)
}

var env environment

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	c, err := cluster.Open(ctx, cluster.Options{PretendKubelet: true, Pods: true})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopped := c.Stop(); err == nil {
			err = stopped
		}
	}()
	env.cluster = c
	if err := install(ctx); err != nil {
		return 1, err
	}
	if env.client, err = dynamic.NewForConfig(c.RESTConfig()); err != nil {
		return 1, err
	}
	code = m.Run()
	for _, line := range notRun {
		fmt.Fprintln(os.Stderr, "e2e: not run:", line)
	}
	if code != 0 {
		showLogs(ctx)
	}
	return code, checkForbidden()
}

// install installs webhook and agent: in Pods, where the nodes have an image of them.
func install(ctx context.Context) error {
	image := env.cluster.Image()
	if image == "" {
		processes, err := installation.Install(ctx, env.cluster, os.Stderr)
		env.installation = processes
		return err
	}
	pods, err := installation.InstallPods(ctx, env.cluster, image, os.Stderr)
	env.installation, env.pods = pods, pods
	return err
}

// notRun are the tests that this cluster cannot show anything with, and why.
var notRun []string

// cannotRun skips a test, and has the end of the run say so by name.
func cannotRun(t *testing.T, why string) {
	t.Helper()
	notRun = append(notRun, t.Name()+": "+why)
	t.Skip(why)
}

// checkForbidden fails if webhook or agent have tried what they may not, in
// whatever test of this run.
func checkForbidden() error {
	if env.cluster.AuditLog() == "" {
		return nil
	}
	forbidden, err := forbiddenRequests()
	if err != nil {
		return err
	}
	if len(forbidden) > 0 {
		return fmt.Errorf("%d requests of webhook and agent were refused: %q", len(forbidden), forbidden)
	}
	return nil
}

// showLogs prints the ends of the logs: the folder is gone when the tests are.
func showLogs(ctx context.Context) {
	const most = 8 << 10
	paths, err := env.installation.LogFiles(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			continue
		}
		if _, err := file.Seek(-most, io.SeekEnd); err != nil {
			_, err = file.Seek(0, io.SeekStart)
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Fprintf(os.Stderr, "--- end of %s\n", path)
		_, _ = io.Copy(os.Stderr, file) // best effort: the tests have failed already
		file.Close()
	}
}

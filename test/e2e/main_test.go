package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// What all tests share. No other suite uses this cluster, because the installation is
// cluster-wide.
var (
	hub  *kit.Plane
	both installed
	// inPods is the installation if it runs in Pods, or nil.
	inPods *installation.Pods
)

// installed is webhook and agent, as processes beside the cluster or as Pods in it.
type installed interface {
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

func TestMain(m *testing.M) {
	kit.Suite{
		Name: "e2e",
		Start: func(ctx context.Context) (err error) {
			if hub, err = kit.OpenPlane(ctx, cluster.Options{PretendKubelet: true, Pods: true}); err != nil {
				return err
			}
			return install(ctx)
		},
		Logs:  logs,
		Check: func(context.Context) error { showNotRun(); return checkForbidden() },
		Stop:  func() error { return hub.Stop() },
	}.Main(m)
}

// logs returns the readable log files of webhook and agent.
func logs() []string {
	paths, err := both.LogFiles(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	}
	return paths
}

// install installs webhook and agent: in Pods, if the nodes have an image.
func install(ctx context.Context) error {
	image := hub.Image()
	if image == "" {
		processes, err := installation.Install(ctx, hub.Cluster, os.Stderr)
		both = processes
		return err
	}
	var err error
	inPods, err = installation.InstallPods(ctx, hub.Cluster, image, os.Stderr)
	both = inPods
	return err
}

// notRun lists the tests that this cluster does not support, with the reasons.
var notRun []string

func showNotRun() {
	for _, line := range notRun {
		fmt.Fprintln(os.Stderr, "e2e: not run:", line)
	}
}

// cannotRun skips a test, and the end of the run lists it.
func cannotRun(t *testing.T, why string) {
	t.Helper()
	notRun = append(notRun, t.Name()+": "+why)
	t.Skip(why)
}

// checkForbidden fails if any test of this run saw a forbidden request of webhook or
// agent.
func checkForbidden() error {
	if hub.AuditLog() == "" {
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

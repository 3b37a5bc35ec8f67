package ha

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

// timeout is how long anything may take that a test waits for. It is long,
// because machines are slow, and not because anything needs it.
const timeout = 2 * time.Minute

// agents is how many there are.
const agents = 2

// environment is what all tests share.
type environment struct {
	cluster      *cluster.Cluster
	installation *installation.Installation
	client       kubernetes.Interface // the administrator's
}

var env environment

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ha:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	c, err := cluster.Open(ctx, cluster.Options{
		PretendKubelet: true,
		ControllerArgs: []string{"--horizontal-pod-autoscaler-sync-period=1s"}, // usually 15
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	installed, err := installation.InstallWith(ctx, c, installation.Options{Agents: agents}, os.Stderr)
	if err != nil {
		return 1, err
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return 1, err
	}
	env = environment{cluster: c, installation: installed, client: client}
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
			fmt.Fprintln(os.Stderr, "ha:", err)
			continue
		}
		fmt.Fprintf(os.Stderr, "--- end of %s\n", path)
		_, _ = os.Stderr.Write(text[max(0, len(text)-most):]) // best effort: the tests have failed already
	}
}

package admission

import (
	"context"
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
const timeout = 60 * time.Second

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
		fmt.Fprintln(os.Stderr, "admission:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	c, err := cluster.Open(ctx, cluster.Options{PretendKubelet: true})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopped := c.Stop(); err == nil {
			err = stopped
		}
	}()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return 1, err
	}
	installed, err := installation.InstallWith(ctx, c, installation.Options{
		Replicas:    2,
		WebhookArgs: []string{"--ca-overlap=5s"}, // one API server takes a CA in within a second
	}, os.Stderr)
	if err != nil {
		return 1, err
	}
	env = environment{cluster: c, installation: installed, client: client}
	if err := bindClusterAdmin(ctx); err != nil {
		return 1, err
	}
	code = m.Run()
	if code != 0 {
		showLogs(installed.Logs())
	}
	// A server that ends waits five seconds for connections that nobody has used
	// yet, and the API server keeps such: end them, or it would seem to hang.
	return code, installed.RefuseWebhook()
}

// showLogs prints the ends of the logs: the folder is gone when the tests are.
func showLogs(paths []string) {
	const most = 8 << 10
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, "admission:", err)
			continue
		}
		fmt.Fprintf(os.Stderr, "--- end of %s\n", path)
		_, _ = os.Stderr.Write(text[max(0, len(text)-most):]) // best effort: the tests have failed already
	}
}

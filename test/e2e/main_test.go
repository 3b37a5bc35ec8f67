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
	installation *installation.Installation
	client       dynamic.Interface
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
	c, err := cluster.Open(ctx, cluster.Options{PretendKubelet: true})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopped := c.Stop(); err == nil {
			err = stopped
		}
	}()
	installed, err := installation.Install(ctx, c, os.Stderr)
	if err != nil {
		return 1, err
	}
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		return 1, err
	}
	env = environment{cluster: c, installation: installed, client: client}
	code = m.Run()
	if code != 0 {
		showLogs(installed.Logs())
	}
	return code, checkForbidden()
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
func showLogs(paths []string) {
	const most = 8 << 10
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

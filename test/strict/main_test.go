package strict

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// timeout is how long anything may take that a test waits for. It is long,
// because machines are slow, and not because anything needs it.
const timeout = 2 * time.Minute

// narrow is where Applications are kept to their namespaces, wide where they may
// have objects in every one, and in none.
var narrow, wide *world

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "strict:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	narrow, err = newWorld(ctx, "strict")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, narrow.cluster.Stop()) }()
	wide, err = newWorld(ctx, "cluster-scope", "--scope=cluster")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, wide.cluster.Stop()) }()
	code = m.Run()
	if code != 0 {
		showLogs(narrow, wide)
	}
	return code, errors.Join(narrow.checkWrites(), wide.checkWrites())
}

// showLogs prints the ends of the logs: the folders are gone when the tests are.
func showLogs(worlds ...*world) {
	const most = 8 << 10
	for _, w := range worlds {
		for _, path := range w.installation.Logs() {
			text, err := os.ReadFile(path)
			if err != nil {
				fmt.Fprintln(os.Stderr, "strict:", err)
				continue
			}
			fmt.Fprintf(os.Stderr, "--- end of %s\n", path)
			_, _ = os.Stderr.Write(text[max(0, len(text)-most):]) // best effort: the tests have failed already
		}
	}
}

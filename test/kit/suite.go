package kit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
)

// Suite is how the tests of a package run: what they share is started before them
// and stopped after them.
type Suite struct {
	// Name begins each line that the suite prints.
	Name string
	// AtOnce is how many tests run at once, whatever the machine, because they wait
	// for others; 0 leaves it to go test.
	AtOnce int
	// Start starts what the tests share.
	Start func(ctx context.Context) error
	// Logs are the files whose ends are printed if a test failed: their folder is
	// removed by Stop. Nil for none.
	Logs func() []string
	// Check looks at all that the tests have done, whatever their result; nil for nothing.
	Check func(ctx context.Context) error
	// Stop stops what Start started, all of it or the part before its error; nil for nothing.
	Stop func() error
}

// Main runs the tests and exits.
func (s Suite) Main(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // TestMain is a main
	code, err := s.run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", s.Name, err)
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // TestMain is a main
}

func (s Suite) run(ctx context.Context, tests interface{ Run() int }) (code int, err error) {
	flag.Parse()
	if s.AtOnce > 0 {
		if err := flag.Set("test.parallel", strconv.Itoa(s.AtOnce)); err != nil {
			return 1, err
		}
	}
	if s.Stop != nil {
		defer func() { err = errors.Join(err, s.Stop()) }()
	}
	if s.Start != nil {
		if err := s.Start(ctx); err != nil {
			return 1, err
		}
	}
	code = tests.Run()
	if s.Check != nil {
		err = s.Check(ctx)
	}
	if s.Logs != nil && (code != 0 || err != nil) {
		ShowLog(s.Logs()...)
	}
	return code, err
}

// ShowLog prints the ends of logs. A log that was never begun is left out.
func ShowLog(paths ...string) {
	const most = 8 << 10
	for _, path := range paths {
		text, err := os.ReadFile(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
		default:
			fmt.Fprintf(os.Stderr, "--- end of %s\n%s", path, text[max(0, len(text)-most):])
		}
	}
}

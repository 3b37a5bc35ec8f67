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

// Suite configures how the tests of a package run: Start runs before them and Stop
// after them.
type Suite struct {
	// Name begins each line that the suite prints.
	Name string
	// Long leaves the whole suite to make test-all, because it starts too much for make test: the reason, or "".
	Long string
	// AtOnce is the number of parallel tests on any machine, because they mostly wait;
	// 0 leaves it to go test.
	AtOnce int
	// Start starts what the tests share.
	Start func(ctx context.Context) error
	// Logs returns the files whose ends are printed if a test failed: Stop removes
	// their folder. Nil for none.
	Logs func() []string
	// Check checks the work of all tests, whatever their result; nil for no check.
	Check func(ctx context.Context) error
	// Stop stops everything that Start started, also after an error of Start; nil for
	// nothing.
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
	if testing.Short() && s.Long != "" {
		fmt.Fprintf(os.Stderr, "%s: make test-all runs it: %s\n", s.Name, s.Long)
		return 0, nil
	}
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

// ShowLog prints the ends of logs. It skips a log that does not exist.
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

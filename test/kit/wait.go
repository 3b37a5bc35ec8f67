package kit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
)

// Timeout limits every wait of a test. It is long because test machines are slow;
// no test needs that long on an idle machine.
const Timeout = 2 * time.Minute

// firstPause and longestPause are the time between two checks, which grows: a check by a request or a command takes
// processor time from what it waits for.
const firstPause, longestPause = 20 * time.Millisecond, 500 * time.Millisecond

// longer returns the pause after another one.
func longer(pause time.Duration) time.Duration { return min(pause*5/4, longestPause) }

// Eventually runs check until it returns no complaint. After [Timeout] the test
// fails with the last complaint, which must describe the state that check saw.
func Eventually(t testing.TB, check func() (complaint string)) {
	t.Helper()
	EventuallyWithin(t, Timeout, check)
}

// EventuallyWithin is [Eventually] with another limit.
func EventuallyWithin(t testing.TB, limit time.Duration, check func() (complaint string)) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for pause := firstPause; ; pause = longer(pause) {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", limit, complaint)
		}
		time.Sleep(pause)
	}
}

// EventuallyNil is [Eventually] for a check that returns an error.
func EventuallyNil(t testing.TB, try func() error) {
	t.Helper()
	Eventually(t, func() string { return check.Message(try()) })
}

// EventuallyTrue is [Eventually] for a condition with a constant complaint.
func EventuallyTrue(t testing.TB, complaint string, holds func() bool) {
	t.Helper()
	Eventually(t, func() string {
		if holds() {
			return ""
		}
		return complaint
	})
}

// Wait runs done until it returns true or an error. After [Timeout], or when the
// context ends, the error names what was waited for.
func Wait(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	for pause := firstPause; ; pause = longer(pause) {
		ok, err := done()
		if err != nil {
			return fmt.Errorf("wait until %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// Must is [check.Must], for suites that need nothing else of that package.
func Must(t testing.TB, err error) {
	t.Helper()
	check.Must(t, err)
}

// ErrorOf returns the error of a call whose other result is not needed.
func ErrorOf[T any](_ T, err error) error { return err }

// lasting returns the context of a test for requests that its cleanup makes too: it
// does not end with the test.
func lasting(t testing.TB) context.Context { return context.WithoutCancel(t.Context()) }

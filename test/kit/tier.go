package kit

import "testing"

// Long leaves a test to make test-all: make test runs with -short and skips it. The
// reason names what takes long.
func Long(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-all runs it: " + reason)
	}
}

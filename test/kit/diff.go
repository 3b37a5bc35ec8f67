package kit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Diff fails the test if a value is not the wanted one, and shows what differs.
func Diff(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

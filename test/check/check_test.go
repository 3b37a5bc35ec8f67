package check

import (
	"errors"
	"testing"
)

// recorder is a test that counts its failures and continues.
type recorder struct {
	testing.TB

	failures int
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failures++ }
func (r *recorder) Fatal(...any)          { r.failures++ }

// An assertion that cannot fail proves nothing.
func TestAssertionsFail(t *testing.T) {
	failure := errors.New("a text")
	for _, c := range []struct {
		why      string
		failures int
		assert   func(t testing.TB)
	}{
		{"no error", 0, func(t testing.TB) { Must(t, nil) }},
		{"an error", 1, func(t testing.TB) { Must(t, failure) }},
		{"equal", 0, func(t testing.TB) { Equal(t, "", []any{"a"}, []any{"a"}) }},
		{"a difference", 1, func(t testing.TB) { Equal(t, "", []any{int64(1)}, []any{1.0}) }},
		{"nil is not empty", 1, func(t testing.TB) { Equal(t, "", nil, []string{}) }},
		{"an empty list", 0, func(t testing.TB) { Empty(t, "", []string{}) }},
		{"a list", 1, func(t testing.TB) { Empty(t, "", []string{""}) }},
		{"the text", 0, func(t testing.TB) { Fails(t, "", failure, "text") }},
		{"another text", 1, func(t testing.TB) { Fails(t, "", failure, "other") }},
		{"no error where there must be one", 1, func(t testing.TB) { Fails(t, "", nil, "text") }},
		{"an error where there must be none", 1, func(t testing.TB) { Fails(t, "", failure, "") }},
		{"none where there must be none", 0, func(t testing.TB) { Fails(t, "", nil, "") }},
	} {
		var r recorder
		if c.assert(&r); r.failures != c.failures {
			t.Errorf("%s: %d failures, want %d", c.why, r.failures, c.failures)
		}
	}
}

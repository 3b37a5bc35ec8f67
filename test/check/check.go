// Package check has the assertions of all tests: no error, and the expected value. It
// imports no other package of this module, so that the tests of every package can use
// it.
package check

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal reports each difference between two values, with the name of what was compared.
func Equal[T any](t testing.TB, what string, want, got T, options ...cmp.Option) {
	t.Helper()
	if reflect.DeepEqual(want, got) { // much faster than go-cmp
		return
	}
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s: -want +got\n%s", what, diff)
	}
}

// Empty reports the elements of a list that must be empty.
func Empty[E any](t testing.TB, what string, found []E) {
	t.Helper()
	if len(found) > 0 {
		t.Errorf("%s: %v, want none", what, found)
	}
}

// Fails requires an error with this text in its message, or no error if the text is
// empty.
func Fails(t testing.TB, what string, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || !strings.Contains(Message(err), text) {
		t.Errorf("%s: error %v, want %q", what, err, text)
	}
}

// Message returns the text of an error, and the empty string for nil.
func Message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

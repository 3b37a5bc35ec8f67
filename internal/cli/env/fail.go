package env

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrDifferent is not a failure: there are differences, which the exit status reports.
var ErrDifferent = errors.New("there are differences")

// One accepts one argument. The error names what it is.
func One(what string) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		switch len(arguments) {
		case 0:
			return fmt.Errorf("name one %s: %s", what, command.UseLine())
		case 1:
			return nil
		}
		return fmt.Errorf("name one %s, and not %d: %s", what, len(arguments), command.UseLine())
	}
}

// NoArguments accepts no argument. The error names the first.
func NoArguments(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	return fmt.Errorf("%s is too much: %s", arguments[0], command.UseLine())
}

// Exit statuses, as in kubectl diff.
const (
	exitDifferent = 1
	exitFailed    = 2
)

// Fail prints an error of a command, and returns the exit status: 0 without one, 1 if a
// command that compares has found differences, 2 if anything went wrong.
func Fail(err error, out io.Writer) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrDifferent):
		return exitDifferent
	}
	for _, failure := range apart(err) {
		fmt.Fprintln(out, "error:", failure.Error()+remedy(failure))
	}
	return exitFailed
}

// apart returns the joined errors.
func apart(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var failures []error
	for _, failure := range joined.Unwrap() {
		failures = append(failures, apart(failure)...)
	}
	return failures
}

// remedy returns the way out of an error of the API server or of the connection to it, which
// does not name one.
func remedy(err error) string {
	var connection net.Error
	switch {
	case apierrors.IsUnauthorized(err):
		return ": log in again, or name another user by --user or --context"
	case apierrors.IsForbidden(err):
		return ": kubectl auth can-i --list shows what you may do in a namespace; its administrator can bind a ClusterRole, as view or edit"
	case errors.As(err, &connection):
		return ": no API server answers there: check the --context, and whether the cluster runs"
	}
	return ""
}

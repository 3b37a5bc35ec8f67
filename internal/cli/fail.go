package cli

import (
	"errors"
	"fmt"
	"io"
)

// errDifferent is no failure: there are differences, and the exit status says so.
var errDifferent = errors.New("there are differences")

// Exit statuses, as kubectl diff has them.
const (
	exitDifferent = 1
	exitFailed    = 2
)

// Fail prints an error of a command, and gives the exit status: 0 without one, 1 if
// a command that compares has found differences, 2 if anything went wrong.
func Fail(err error, out io.Writer) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errDifferent):
		return exitDifferent
	}
	fmt.Fprintln(out, "error:", err)
	return exitFailed
}

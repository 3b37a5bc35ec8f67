// Conformance runs folders of test vectors against the observer-schema engine. It
// prints a line for each file, each failure with its difference, and the totals:
//
//	go run ./test/conformance [--semantic] DIR [DIR...]
//
// It exits with 1 if a case failed, and with 2 if a folder could not be run. The
// vectors compare values literally. With --semantic, the engine compares values by
// their meaning in the API, and the cases that require a literal comparison are
// skipped.
//
// The project's own vectors are in testdata/vectors; its README describes the format.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
)

func main() {
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// execute returns the exit code.
func execute(arguments []string, out, problems io.Writer) int {
	r := runner{out: out, functions: functions}
	flags := pflag.NewFlagSet("conformance", pflag.ContinueOnError)
	flags.SetOutput(problems)
	flags.BoolVar(&r.semantic, "semantic", false, "compare values as the API means them, not as they are written")
	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(problems, "conformance:", err)
		return 2
	case flags.NArg() == 0:
		fmt.Fprintln(problems, "usage: conformance [--semantic] DIR [DIR...]")
		return 2
	}
	failed, err := r.run(flags.Args())
	switch {
	case err != nil:
		fmt.Fprintln(problems, "conformance:", err)
		return 2
	case failed:
		return 1
	}
	return 0
}

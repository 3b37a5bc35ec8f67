// Conformance runs folders of test vectors against an observer-schema engine. It prints a line for
// each file, each failure with its difference, and the totals:
//
//	go run ./test/conformance [--semantic] DIR...                     the engine of this repository
//	go run ./test/conformance [--semantic] --command COMMAND DIR...   another implementation
//	go run ./test/conformance --serve                                 answers such a runner with this engine
//
// It exits with 1 if a case failed, and with 2 if nothing could be run. The vectors compare
// values literally. With --semantic, the engine compares values by their meaning in the API, and the
// cases that require a literal comparison are skipped.
//
// The project's own vectors are in the folder conformance; its README describes format and protocol.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

func main() {
	os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute returns the exit code.
func execute(arguments []string, in io.Reader, out, problems io.Writer) int {
	failed, err := run(arguments, in, out, problems)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(problems, "conformance:", err)
		return 2
	case failed:
		return 1
	}
	return 0
}

// run reports whether a case failed.
func run(arguments []string, in io.Reader, out, problems io.Writer) (failed bool, err error) {
	flags := pflag.NewFlagSet("conformance", pflag.ContinueOnError)
	flags.SetOutput(problems)
	semantic := flags.Bool("semantic", false, "compare values as the API means them, not as they are written")
	command := flags.String("command", "", "another implementation: a program and its arguments, separated by spaces")
	timeout := flags.Duration("timeout", 10*time.Second, "how long another implementation may take for an answer")
	serving := flags.Bool("serve", false, "answer a runner on standard input and output")
	err = flags.Parse(arguments)
	switch {
	case err != nil:
		return false, err
	case *serving:
		return false, serve(in, out)
	case flags.NArg() == 0:
		return false, errors.New("usage: conformance [--semantic] [--command COMMAND] DIR [DIR...]")
	}
	r := runner{out: out, engine: ours{functions: functions, semantic: *semantic}, semantic: *semantic}
	if words := strings.Fields(*command); len(words) > 0 {
		mode := literalMode
		if *semantic {
			mode = semanticMode
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		other, err := startTheirs(ctx, words, mode, *timeout, problems)
		if err != nil {
			return false, err
		}
		r.engine = other
		failed, err = r.run(flags.Args())
		return failed, errors.Join(err, other.end())
	}
	return r.run(flags.Args())
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// verdict is the result of a package's tests; empty if all pass.
type verdict struct {
	// failed is the first test that failed, with its subtest.
	failed string
	// invariant is the first invariant that test/faults found violated, as I2.
	invariant string
	// broken is the compiler's error.
	broken string
	// output is what the failed test printed, with the tests around it.
	output string
	// tier names the tests of the verdict, see tiers.
	tier string
}

// tester runs the tests of a package under an overlay, or none. As in a shell,
// variables may precede the package, and arguments follow it.
type tester func(ctx context.Context, overlay, pkg string) (verdict, error)

// goTest returns the tester of the module in a folder.
func goTest(dir string) tester {
	return func(ctx context.Context, overlay, pkg string) (verdict, error) {
		// A mutant may run forever. The tests take a small part of this.
		variables, arguments := split(pkg)
		arguments = append([]string{"test", "-json", "-count=1", "-failfast", "-vet=off", "-timeout=3m", "-overlay=" + overlay}, arguments...)
		command := exec.CommandContext(ctx, "go", arguments...)
		command.Env = append(os.Environ(), variables...)
		if overlay != "" { // programs that the tests build have the mutant, too
			command.Env = append(command.Env, "GOFLAGS=-overlay="+overlay)
		}
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		command.WaitDelay = 10 * time.Second
		command.Dir = dir
		var events, words bytes.Buffer
		command.Stdout, command.Stderr = &events, &words
		err := command.Run()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
			return verdict{}, errors.Join(ctx.Err(), err)
		}
		found, err := judge(&events)
		if err != nil {
			return verdict{}, fmt.Errorf("go test %s: %w: %s", pkg, err, words.Bytes())
		}
		return found, nil
	}
}

// split separates the variables from the package and its arguments.
func split(pkg string) (variables, arguments []string) {
	for word := range strings.FieldsSeq(pkg) {
		if len(arguments) == 0 && strings.Contains(word, "=") {
			variables = append(variables, word)
		} else {
			arguments = append(arguments, word)
		}
	}
	return variables, arguments
}

// invariant matches the begin of a line that reports a violation.
var invariant = regexp.MustCompile(`^\s*(?:[a-z_0-9]+_test\.go:\d+: )?(I\d+): `)

// event has the fields of a line of go test -json that are read here.
type event struct{ Action, Test, Output string }

// judge reads the output of go test -json for one package.
func judge(events io.Reader) (verdict, error) {
	var found verdict
	var built, running string
	printed := map[string]string{} // by test
	decoder := json.NewDecoder(events)
	for {
		var e event
		if err := decoder.Decode(&e); err != nil {
			return verdict{}, fmt.Errorf("no result: %w", err)
		}
		switch e.Action {
		case "build-output":
			built += e.Output
		case "build-fail":
			found.broken = built
		case "output":
			printed[e.Test] += e.Output
			if violated := invariant.FindStringSubmatch(e.Output); violated != nil && found.invariant == "" {
				found.invariant = violated[1]
			}
		case "run":
			running = e.Test
		case "fail":
			if found.failed == "" && found.broken == "" { // a crash names no test: it was the last one that began
				found.failed = cmp.Or(e.Test, running, "the package as a whole")
				found.output = printedAround(printed, found.failed)
			}
		}
		if e.Test == "" && slices.Contains([]string{"pass", "skip", "fail"}, e.Action) {
			return found.orNothing(), nil
		}
	}
}

// printedAround returns what a test printed, after what the tests around it did: they have the seeds.
func printedAround(printed map[string]string, test string) string {
	var all string
	for i, c := range test {
		if c == '/' {
			all += printed[test[:i]]
		}
	}
	return all + printed[test] + printed[""]
}

// orNothing returns an empty verdict if nothing has failed, whatever the output was.
func (v verdict) orNothing() verdict {
	if v.failed == "" && v.broken == "" {
		return verdict{}
	}
	return v
}

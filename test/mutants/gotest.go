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
	"strings"
	"time"
)

// verdict is the result of a package's tests; empty if all pass.
type verdict struct {
	// caught is the first test that failed, with its subtest.
	caught string
	// broken is the error of the compiler.
	broken string
}

// String is how the table names it.
func (v verdict) String() string {
	switch {
	case v.broken != "":
		return "DOES NOT COMPILE: " + v.broken
	case v.caught != "":
		return "`" + v.caught + "`"
	}
	return "SURVIVED"
}

// goTest runs tests under an overlay, or none. The tests are arguments of go test.
func goTest(ctx context.Context, dir, overlay, tests string) (verdict, error) {
	// A bug may make a test run forever. The tests take a small part of this.
	arguments := []string{"test", "-json", "-short", "-failfast", "-vet=off", "-timeout=3m"}
	command := exec.CommandContext(ctx, "go", append(arguments, strings.Fields(tests)...)...)
	if overlay != "" { // programs that the tests build have the bug, too
		command.Env = append(os.Environ(), "GOFLAGS=-overlay="+overlay)
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
		return verdict{}, fmt.Errorf("go test %s: %w: %s", tests, err, words.Bytes())
	}
	return found, nil
}

// judge reads the output of go test -json for one package.
func judge(events io.Reader) (verdict, error) {
	var found verdict
	var built, running string
	decoder := json.NewDecoder(events)
	for {
		var event struct{ Action, Test, Output string }
		if err := decoder.Decode(&event); err != nil {
			return verdict{}, fmt.Errorf("no result: %w", err)
		}
		switch event.Action {
		case "build-output":
			built += event.Output
		case "build-fail":
			found.broken = built
		case "run":
			running = event.Test
		case "fail":
			if found == (verdict{}) { // a crash names no test: it was the last one that began
				found.caught = cmp.Or(event.Test, running, "the package as a whole")
			}
		}
		if event.Test == "" && (event.Action == "pass" || event.Action == "skip" || event.Action == "fail") {
			return found, nil
		}
	}
}

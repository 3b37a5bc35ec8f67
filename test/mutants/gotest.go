package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// verdict is what the tests of a package say; nothing if all pass.
type verdict struct {
	// failed is the first test that failed, with its subtest.
	failed string
	// broken is what the compiler said.
	broken string
}

// tester runs the tests of a package under an overlay, or none.
type tester func(ctx context.Context, overlay, pkg string) (verdict, error)

// goTest gives the tester of the module in a folder.
func goTest(dir string) tester {
	return func(ctx context.Context, overlay, pkg string) (verdict, error) {
		// A mutant may run for ever. What the tests take is a small part of this.
		command := exec.CommandContext(ctx, "go", "test", "-json", "-failfast", "-vet=off", "-timeout=3m", "-overlay="+overlay, pkg)
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

// event is a line of go test -json, as far as it is read here.
type event struct{ Action, Test, Output string }

// judge reads what go test -json says of one package.
func judge(events io.Reader) (verdict, error) {
	var found verdict
	var built, running string
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
		case "run":
			running = e.Test
		case "fail":
			if found == (verdict{}) { // a crash names no test: it was the last that began
				found.failed = firstOf(e.Test, running, "the package as a whole")
			}
		}
		if ended := e.Action == "pass" || e.Action == "skip" || e.Action == "fail"; ended && e.Test == "" {
			return found, nil
		}
	}
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

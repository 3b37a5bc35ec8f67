// Load measures drift and repair under load, for our agent and for others, and what admission costs. It
// starts and stops a real API server for that:
//
//	make bench
//	make bench ARGS="--quick"
//	make bench WHO="former ours" ARGS="--former ../old --contenders ours,former --scenarios memory,drift --concurrency 1"
//
// It writes results as go test -bench does, and make bench shows them with benchstat: a table for each scenario, with a
// column for each contender (WHO). In each round the contenders take turns, so that other load on the machine affects all
// of them alike.
//
// The bench treats each program as a black box: it changes a field as another field manager, and watches
// until the field is restored. It counts requests in the API server's audit log, and reads CPU and memory
// from the kernel. docs/speed.md describes the measurements.
package main

import (
	"context"
	"os"

	"github.com/krake-observer/krake-observer/internal/program"
)

func main() {
	options := new(Options)
	program.Main("load", options, func(ctx context.Context) error {
		if err := options.Complete(); err != nil {
			return err
		}
		return run(ctx, *options, os.Stdout, os.Stderr)
	})
}

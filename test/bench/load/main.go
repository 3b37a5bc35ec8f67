// Load measures drift and repair under load, with other ways to do the same beside
// ours, on a real API server that it starts for it and stops again:
//
//	make bench
//	make bench ARGS="--quick"
//	make bench ARGS="--scenarios drift,storm --sizes 100,1000 --rounds 5 --json load.json --plots docs/load"
//
// It is a black box: it changes a field as another field manager, and sees by a
// watch of its own when the field is back. Requests are counted from the API
// server's audit log, CPU and memory by the kernel. docs/load.md says what is
// measured, and how a ratio counts.
package main

import (
	"context"
	"os"

	"github.com/krake-observer/krake-observer/test/program"
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

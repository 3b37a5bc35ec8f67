// Load measures drift and repair under load, for our agent and for other programs. It starts and stops a real
// API server for that:
//
//	make bench
//	make bench ARGS="--quick"
//	make bench ARGS="--scenarios drift,storm --sizes 100,1000 --rounds 5 --json load.json --plots bin/plots"
//
// The bench treats each program as a black box: it changes a field as another field manager, and watches
// until the field is restored. It counts requests in the API server's audit log, and reads CPU and memory
// from the kernel. docs/speed.md describes the measurements, and which ratios count.
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

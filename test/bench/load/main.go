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
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var options Options
	options.AddFlags(pflag.CommandLine)
	pflag.Parse()
	err := options.Complete()
	if err == nil {
		err = run(ctx, options, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

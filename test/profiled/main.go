// Profiled is cmd/agent with profiling, which the product does not have. A SIGUSR1
// begins a CPU profile. The next one ends it, and writes cpu.pprof and heap.pprof into
// the folder that the variable KRAKE_PROFILES names. The load bench runs it with
// --profile.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/test/program"
)

func main() {
	options := new(agent.Options)
	program.Main("profiled", options, func(ctx context.Context) error {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGUSR1)
		go profile(ctx, os.Getenv("KRAKE_PROFILES"), asked)
		return agent.Run(ctx, *options)
	})
}

// Profiled is cmd/agent with profiling, which the product does not have. When it ends, it writes a CPU profile of its
// whole life, and a heap profile of its end, into the folder that the variable KRAKE_PROFILES names. The load bench
// runs it with --profile.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"

	"github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/test/program"
)

func main() {
	options := new(agent.Options)
	program.Main("profiled", options, func(ctx context.Context) error {
		name := filepath.Join(os.Getenv("KRAKE_PROFILES"), fmt.Sprintf("agent-%d", os.Getpid()))
		cpu, err := os.Create(name + ".cpu.pprof")
		if err != nil {
			return err
		}
		heap, err := os.Create(name + ".heap.pprof")
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(cpu); err != nil {
			return err
		}
		failure := agent.Run(ctx, *options)
		pprof.StopCPUProfile()
		runtime.GC() // garbage does not count as memory that the agent needs
		return errors.Join(failure, pprof.WriteHeapProfile(heap), heap.Close(), cpu.Close())
	})
}

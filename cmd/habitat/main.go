// Habitat makes Applications of Habitats, for the agent of the cluster to carry out, and
// keeps their peer files.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/habitat"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var options habitat.Options
	options.AddFlags(pflag.CommandLine)
	pflag.Parse()
	err := options.Validate()
	if err == nil {
		err = habitat.Run(ctx, options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "habitat:", err)
		os.Exit(1)
	}
}

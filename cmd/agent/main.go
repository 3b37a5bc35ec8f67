// Agent carries out the Applications of one cluster: it creates their objects,
// watches them, and reverts the changes of observed fields.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var options agent.Options
	options.AddFlags(pflag.CommandLine)
	pflag.Parse()
	if err := options.Validate(); err != nil {
		return err
	}
	return agent.Run(ctx, options)
}

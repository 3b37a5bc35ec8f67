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
	var options agent.Options
	options.AddFlags(pflag.CommandLine)
	pflag.Parse()
	err := options.Validate()
	if err == nil {
		err = agent.Run(ctx, options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// Webhook completes Applications when they are created or changed: it checks them,
// and computes their mangled observer schema and first last applied manifest.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/webhook"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "webhook:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var options webhook.Options
	options.AddFlags(pflag.CommandLine)
	pflag.Parse()
	if err := options.Validate(); err != nil {
		return err
	}
	return webhook.Run(ctx, options)
}

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
	var options webhook.Options
	options.AddFlags(pflag.CommandLine)
	pflag.Parse()
	err := options.Validate()
	if err == nil {
		err = webhook.Run(ctx, options)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "webhook:", err)
		os.Exit(1)
	}
}

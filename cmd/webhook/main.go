// Webhook completes Applications when they are created or changed: it checks them,
// and computes their mangled observer schema and first last applied manifest.
package main

import (
	"context"

	"github.com/krake-observer/krake-observer/internal/program"
	"github.com/krake-observer/krake-observer/internal/webhook"
)

func main() {
	var options webhook.Options
	program.Main("webhook", &options, func(ctx context.Context) error { return webhook.Run(ctx, options) })
}

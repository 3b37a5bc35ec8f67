// Demo shows the main job live, on a real API server that it starts and stops: an
// Application is created, drifts, heals, and is deleted.
package main

import (
	"context"
	"os"

	"github.com/krake-observer/krake-observer/internal/program"
)

func main() {
	program.Main("demo", nil, func(ctx context.Context) error {
		if err := run(ctx, os.Stdout); err != nil && ctx.Err() == nil {
			return err
		}
		return context.Cause(ctx)
	})
}

// Package program has the code that the commands below test/ share beside their main function: repeated calls.
package program

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// Pause waits for that long. It returns the cause if the context ends before.
func Pause(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(long):
		return nil
	}
}

// Each calls do with the numbers below times, atOnce of them concurrently, until a call
// returns an error.
func Each(ctx context.Context, times, atOnce int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range times {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}

package main

import (
	"context"
	"time"

	"github.com/krake-observer/krake-observer/test/usage"
)

// memory is what a process has resident: the least of some seconds, for what is
// garbage is not what it needs.
func memory(ctx context.Context, pid int) (bytes int64, err error) {
	const seconds = 10
	for range seconds {
		now, err := usage.Of(pid)
		if err != nil {
			return 0, err
		}
		if bytes == 0 || now.Resident < bytes {
			bytes = now.Resident
		}
		if err := pause(ctx, time.Second); err != nil {
			return 0, err
		}
	}
	return bytes, nil
}

func pause(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(long):
		return nil
	}
}

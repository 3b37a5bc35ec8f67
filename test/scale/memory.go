package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// memory is what a process has resident: the least of some seconds, for what is
// garbage is not what it needs.
func memory(ctx context.Context, pid int) (bytes int64, err error) {
	const seconds = 10
	for range seconds {
		now, err := resident(pid)
		if err != nil {
			return 0, err
		}
		if bytes == 0 || now < bytes {
			bytes = now
		}
		if err := pause(ctx, time.Second); err != nil {
			return 0, err
		}
	}
	return bytes, nil
}

// resident is what a process has resident now.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of the agent: %w", err)
	}
	return residentIn(string(text))
}

func residentIn(status string) (int64, error) {
	for line := range strings.Lines(status) {
		var kibibytes int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kibibytes); err == nil {
			return kibibytes << 10, nil
		}
	}
	return 0, fmt.Errorf("the process has no memory: %q", status)
}

func pause(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(long):
		return nil
	}
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/krake-observer/krake-observer/test/program"
)

// lock waits until this program alone has the lock of the file, and calls wait once if
// that takes a while. The lock is the kernel's (flock). It ends with the program that
// has it, in any case, so that no stale lock remains.
func lock(ctx context.Context, path string, wait func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	// Closing unlocks. The file stays: if it were removed, a third program could lock a
	// new file while a second one waits for this one.
	for first := true; ; first = false {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		if first {
			wait()
		}
		if err := program.Pause(ctx, 200*time.Millisecond); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
	}
}

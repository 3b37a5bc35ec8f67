package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// profiled profiles our agent while something is measured, if that is wanted and it is
// the one that guards. The profiles are named after what is measured; of several rounds
// the last one's stay.
func (w *world) profiled(name string, measure func() (sample, error)) (sample, error) {
	if w.Profile == "" || w.running != ours {
		return measure()
	}
	if err := w.signal(); err != nil {
		return sample{}, err
	}
	taken, err := measure()
	return taken, errors.Join(err, w.signal(), w.keepProfiles(name))
}

// signal has test/profiled begin, or end.
func (w *world) signal() error {
	if err := syscall.Kill(w.pid(), syscall.SIGUSR1); err != nil {
		return fmt.Errorf("profile the agent: %w", err)
	}
	return nil
}

// keepProfiles waits until the profiles are written, and names them.
func (w *world) keepProfiles(name string) error {
	const tries, step = 100, 100 * time.Millisecond
	for _, what := range []string{"cpu.pprof", "heap.pprof"} {
		from, to := filepath.Join(w.Profile, what), filepath.Join(w.Profile, name+"."+what)
		err := os.Rename(from, to)
		for try := 0; try < tries && errors.Is(err, fs.ErrNotExist); try++ {
			time.Sleep(step)
			err = os.Rename(from, to)
		}
		if err != nil {
			return fmt.Errorf("keep a profile: %w", err)
		}
	}
	return nil
}

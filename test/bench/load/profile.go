package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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

// serverProfiled profiles the API server's processor for serverSeconds while something is
// measured, if that is wanted, whoever guards.
func (w *world) serverProfiled(ctx context.Context, name string, measure func() (sample, error)) (sample, error) {
	if w.Profile == "" {
		return measure()
	}
	server := make(chan error, 1)
	go func() { server <- w.profileServer(ctx, name+"."+w.running+".server.pprof") }()
	taken, err := measure()
	return taken, errors.Join(err, <-server)
}

// serverSeconds is for how long the API server is profiled: no measurement that
// says much of it is shorter.
const serverSeconds = 2

// profileServer writes a profile of the API server's processor to a file.
func (w *world) profileServer(ctx context.Context, name string) error {
	profile, err := w.clients.Typed.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/profile").
		Param("seconds", strconv.Itoa(serverSeconds)).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("profile the API server: %w", err)
	}
	return os.WriteFile(filepath.Join(w.Profile, name), profile, 0o600)
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

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

// profiled profiles our agent during a measurement, if that is requested and the agent
// is the contender. The profiles are named after the measurement; of several rounds,
// the last one's remain.
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

// serverProfiled profiles the API server's CPU for serverSeconds during a measurement, if
// that is requested, with any contender.
func (w *world) serverProfiled(ctx context.Context, name string, measure func() (sample, error)) (sample, error) {
	if w.Profile == "" {
		return measure()
	}
	server := make(chan error, 1)
	go func() { server <- w.profileServer(ctx, name+"."+w.running+".server.pprof") }()
	taken, err := measure()
	return taken, errors.Join(err, <-server)
}

// serverSeconds is the duration of the API server's profile: no relevant measurement is
// shorter.
const serverSeconds = 2

// profileServer writes a CPU profile of the API server to a file.
func (w *world) profileServer(ctx context.Context, name string) error {
	profile, err := w.clients.Typed.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/profile").
		Param("seconds", strconv.Itoa(serverSeconds)).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("profile the API server: %w", err)
	}
	return os.WriteFile(filepath.Join(w.Profile, name), profile, 0o600)
}

// signal makes test/profiled begin, or end.
func (w *world) signal() error {
	if err := syscall.Kill(w.pid(), syscall.SIGUSR1); err != nil {
		return fmt.Errorf("profile the agent: %w", err)
	}
	return nil
}

// keepProfiles waits until the profiles are written, and renames them.
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

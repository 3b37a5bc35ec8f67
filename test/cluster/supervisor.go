package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// supervisor has a folder, and processes whose logs are in it. They end together, at
// the latest with this program.
type supervisor struct {
	folder string
	reaper *reaper

	mu        sync.Mutex
	processes []*Process // in the order of their starts
	stopped   bool
}

// newSupervisor makes the folder, by default a temporary one. Unless keep is set, it
// refuses a folder that is not empty, because it removes the folder at the end.
func newSupervisor(folder string, keep bool) (*supervisor, error) {
	folder, err := makeFolder(folder)
	if err != nil {
		return nil, fmt.Errorf("make folder of the cluster: %w", err)
	}
	remove := folder
	if keep || os.Getenv("KRAKE_TEST_KEEP") != "" {
		remove = ""
	}
	reaper, err := startReaper(remove)
	if err != nil {
		return nil, errors.Join(err, os.Remove(folder))
	}
	return &supervisor{folder: folder, reaper: reaper}, nil
}

func makeFolder(folder string) (string, error) {
	if folder == "" {
		return os.MkdirTemp("", "krake-cluster-")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) > 0 {
		return "", fmt.Errorf("%s is not empty", folder)
	}
	return folder, err
}

// start starts the command as a process whose log is FOLDER/NAME.log.
func (s *supervisor) start(name string, command *exec.Cmd) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, fmt.Errorf("start %s: the cluster is stopped", name)
	}
	s.reaper.adopt(command)
	p, err := startProcess(name, filepath.Join(s.folder, name+".log"), command)
	if err != nil {
		return nil, err
	}
	s.processes = append(s.processes, p)
	return p, nil
}

// stop ends all processes in reverse order of their starts: a process ends before those
// that it needs. Then it removes the folder. A second call does nothing.
func (s *supervisor) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	var errs []error
	for _, p := range slices.Backward(s.processes) {
		errs = append(errs, p.Stop())
	}
	return errors.Join(append(errs, s.reaper.close())...)
}

func (s *supervisor) all() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.processes)
}

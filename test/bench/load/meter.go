package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/krake-observer/krake-observer/test/kit"
)

// meter measures the resources that processes use.
type meter struct {
	w     *world
	began time.Time
	// mark is the end of the audit log at that time.
	mark    kit.Mark
	machine time.Duration
	before  map[int]time.Duration
}

// used is the CPU time that was used: by the contender, by the API server with etcd,
// and by foreign processes.
type used struct {
	long                       time.Duration
	contender, server, foreign time.Duration
}

// into adds the load of other programs to a sample, in cores.
func (u used) into(taken sample) sample {
	taken["foreign-cores"] = u.foreign.Seconds() / u.long.Seconds()
	return taken
}

func (w *world) meter() (*meter, error) {
	m := &meter{w: w, began: time.Now()}
	var err error
	if m.mark, err = kit.MarkAudit(w.cluster); err != nil {
		return nil, err
	}
	if m.before, err = w.processes(); err != nil {
		return nil, err
	}
	m.machine, err = busy()
	return m, err
}

// read returns the resources used since the meter began.
func (m *meter) read() (used, error) {
	long := time.Since(m.began)
	machine, err := busy()
	if err != nil {
		return used{}, err
	}
	after, err := m.w.processes()
	if err != nil {
		return used{}, err
	}
	u := used{long: long, foreign: machine - m.machine}
	for pid, cpu := range after {
		u.foreign -= cpu - m.before[pid]
	}
	u.foreign = max(0, u.foreign)
	if pid := m.w.pid(); pid != 0 {
		u.contender = after[pid] - m.before[pid]
	}
	for _, process := range m.w.cluster.Processes() {
		if name := process.Name(); name == "kube-apiserver" || name == "etcd" {
			u.server += after[process.PID()] - m.before[process.PID()]
		}
	}
	return u, nil
}

// processes returns the CPU time of our running processes and of this one. Number 0 is
// the time of child processes that have ended.
func (w *world) processes() (map[int]time.Duration, error) {
	pids := []int{os.Getpid()}
	for _, process := range w.cluster.Processes() {
		select {
		case <-process.Exited():
		default:
			pids = append(pids, process.PID())
		}
	}
	var ended syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &ended); err != nil {
		return nil, fmt.Errorf("usage of ended processes: %w", err)
	}
	all := map[int]time.Duration{0: time.Duration(ended.Utime.Nano() + ended.Stime.Nano())}
	for _, pid := range pids {
		one, err := usageOf(pid)
		if errors.Is(err, fs.ErrNotExist) { // the process has just ended
			continue
		}
		if err != nil {
			return nil, err
		}
		all[pid] = one.cpu
	}
	return all, nil
}

package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// How long a process may take to end after SIGTERM: the tested ones on a busy machine, and those
// about which no test is.
const (
	stopGrace    = time.Minute
	mayHangGrace = 5 * time.Second
)

// Process is a child process, whose output goes to a file.
type Process struct {
	name    string
	log     string
	offset  int64 // where its output begins: an earlier process may have written before
	command *exec.Cmd
	asked   atomic.Bool // it was asked to end
	mayHang bool        // Stop reports no error if it must be killed
	exited  chan struct{}
	err     error // how it ended; read it only after exited is closed
}

// startProcess starts the command, and appends its output to the file.
func startProcess(name, log string, command *exec.Cmd) (*Process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	defer file.Close() // the child has its own
	offset, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	command.Stdout, command.Stderr = file, file
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{name: name, log: log, offset: offset, command: command, exited: make(chan struct{})}
	go func() {
		p.err = command.Wait()
		close(p.exited)
	}()
	return p, nil
}

// Name returns the name that it was started with.
func (p *Process) Name() string { return p.name }

// PID returns its process ID.
func (p *Process) PID() int { return p.command.Process.Pid }

// Command returns its command, to start it once more, with further flags. Of a flag that is given twice,
// the last one counts.
func (p *Process) Command(more ...string) *exec.Cmd {
	command := exec.Command(p.command.Path, slices.Concat(p.command.Args[1:], more)...)
	command.Dir, command.Env = p.command.Dir, p.command.Env
	return command
}

// Log returns the path of the file with its output.
func (p *Process) Log() string { return p.log }

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Wait waits until the process has ended. It returns nil after success, and else an
// error that wraps [exec.ExitError] and has the end of the log.
func (p *Process) Wait() error {
	<-p.exited
	if p.err == nil {
		return nil
	}
	return p.failure(fmt.Errorf("%s ended: %w", p.name, p.err))
}

// Stop asks the process to end (SIGTERM), and kills it after a minute, which is an
// error. Its exit code after the signal is ignored, but a failure before the signal is
// an error.
func (p *Process) Stop() error {
	if !p.asked.Swap(true) && p.Ended() {
		return p.Wait()
	}
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	grace := stopGrace
	if p.mayHang {
		grace = mayHangGrace
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(grace):
		if err := p.Kill(); err != nil || p.mayHang {
			return err
		}
		return p.failure(fmt.Errorf("stop %s: killed, as it had not ended in %s", p.name, stopGrace))
	}
}

// Kill ends the process at once, and returns when it has ended.
func (p *Process) Kill() error {
	p.asked.Store(true)
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// signal sends a signal. It is no error if the process has ended.
func (p *Process) signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", signal, p.name, err)
	}
	return nil
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// failure adds the end of the log to the error.
func (p *Process) failure(err error) error {
	text, readErr := p.output()
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("%w; its log is empty", err)
	}
	return fmt.Errorf("%w; the end of its log:\n%s", err, lastLines(text, 20))
}

// output returns the end of its output: some lines, and never the whole log of a day.
func (p *Process) output() (string, error) {
	file, err := os.Open(p.log)
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	const enough = 64 << 10
	from := max(p.offset, size-enough)
	text, err := io.ReadAll(io.NewSectionReader(file, from, size-from))
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	return string(text), nil
}

// lastLines returns the end of the text: at most n lines.
func lastLines(text string, n int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}

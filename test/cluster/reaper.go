package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// reaper sees to it that nothing is left behind: neither a process that it has
// adopted nor the folder that it was given outlives this program, not even if
// the program is killed.
//
// It holds the write end of a pipe, which the kernel closes when the program
// ends. Two shells read the other end. The first does nothing but lead the
// process group that the adopted processes join; the second, in a group of its
// own, kills the first one's group and then removes the folder. They are two,
// because a shell in the group would be killed before it could remove the
// folder, and a process that is not yet killed could write to it again.
//
// As their group is not this program's, Ctrl-C at a terminal reaches the
// program alone, which can then stop them in order.
type reaper struct {
	folder  string // empty if nothing is to be removed
	pipe    *os.File
	leader  *exec.Cmd
	janitor *exec.Cmd
}

// Nothing is ever written to the pipe: read returns when it is closed.
const lead = `read -r _`

// Killed at once, not asked to end: what they would save is thrown away. Signals
// are sent until no process is left, for at most five seconds; processes that
// nobody has waited for yet count too. The folder is removed twice, because a
// killed process may finish one last system call.
const cleanUp = `
trap '' HUP INT TERM
read -r _
tries=0
while kill -s KILL -- "-$1" && [ $tries -lt 50 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
[ -z "$2" ] || rm -rf -- "$2" || { sleep 1; rm -rf -- "$2"; }
`

// startReaper takes care of the folder, an absolute path, or of no folder if it
// is empty, and from then on of what it adopts.
func startReaper(folder string) (*reaper, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer read.Close() // only the shells read
	r := &reaper{folder: folder, pipe: write}
	if r.leader, err = shell(read, lead); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	// The folder is an argument, not part of the script: no name needs quotes.
	if r.janitor, err = shell(read, cleanUp, strconv.Itoa(r.group()), folder); err != nil {
		return nil, errors.Join(err, write.Close(), r.leader.Wait())
	}
	return r, nil
}

// shell starts a script in a process group of its own.
func shell(stdin *os.File, script string, args ...string) (*exec.Cmd, error) {
	command := exec.Command("/bin/sh", append([]string{"-c", script, "reaper"}, args...)...)
	command.Stdin = stdin
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start reaper: %w", err)
	}
	return command, nil
}

func (r *reaper) group() int { return r.leader.Process.Pid }

// adopt has the command, which is not started yet, end with this program. So
// will its children, unless they make groups of their own.
func (r *reaper) adopt(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: r.group()}
}

// close ends all that is left of the adopted and removes the folder, in the very
// way in which this is done after the program's death.
func (r *reaper) close() error {
	err := errors.Join(r.pipe.Close(), ignoreExit(r.leader.Wait()), ignoreExit(r.janitor.Wait()))
	if r.folder == "" {
		return err
	}
	// Done already, unless somebody has killed the janitor.
	return errors.Join(err, os.RemoveAll(r.folder))
}

// ignoreExit drops the error which says that a process ended with a failure or
// by a signal: that is how the shells may end.
func ignoreExit(err error) error {
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return nil
	}
	return err
}

package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// reaper removes everything that a program leaves: no adopted process and no folder
// outlives this program, even if the program is killed.
//
// It holds the write end of a pipe, which the kernel closes when the program ends. Two
// shells read the other end. The first only leads the process group that the adopted
// processes join. The second, in another group, kills the first one's group and then
// removes the folder. One shell could not do both. In the group, it would be killed
// before it removes the folder, and a process that still runs could write to the folder
// again.
//
// Because their group is not this program's, Ctrl-C at a terminal reaches only the
// program, which can then stop them in order.
type reaper struct {
	folder  string // empty if nothing is to be removed
	pipe    *os.File
	leader  *exec.Cmd
	janitor *exec.Cmd
}

// Nothing is ever written to the pipe: read returns when it is closed.
const lead = `read -r _`

// The processes are killed at once, because their data are thrown away. Signals are
// sent until no process is left, for at most five seconds; zombies count too. The
// folder is removed twice, because a killed process may finish one last system call.
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

// startReaper takes over the folder, an absolute path, or none if it is empty, and the
// processes that it adopts later.
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
	// The folder is an argument, and not part of the script, so that no name needs
	// quotes.
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

// adopt lets the command, which has not started, end with this program. So will its
// children, unless they make other groups.
func (r *reaper) adopt(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: r.group()}
}

// close ends all remaining adopted processes and removes the folder, exactly as after
// the program's death.
func (r *reaper) close() error {
	err := errors.Join(r.pipe.Close(), ignoreExit(r.leader.Wait()), ignoreExit(r.janitor.Wait()))
	if r.folder == "" {
		return err
	}
	// This is done already, unless the janitor was killed.
	return errors.Join(err, os.RemoveAll(r.folder))
}

// ignoreExit drops the error of a process that ended with a failure or by a signal, as
// the shells may do.
func ignoreExit(err error) error {
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return nil
	}
	return err
}

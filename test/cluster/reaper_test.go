package cluster

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// When a program with a cluster is killed, no process or file of the cluster remains,
// in whatever state the cluster was.
func TestNothingOutlivesAKilledProgram(t *testing.T) {
	t.Parallel()
	provideBinaries(t)
	tests := []struct {
		name  string
		ready func(child *child) bool
	}{
		{"while it starts etcd", func(c *child) bool { return c.has("etcd.log") }},
		{"while it starts the API server", func(c *child) bool { return c.has("kube-apiserver.log") }},
		{"when the cluster is ready", func(c *child) bool { return c.said("ready") }},
	}
	if testing.Short() {
		tests = tests[1:2] // etcd runs, and the API server starts
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := startChild(t)
			eventually(t, time.Minute, "cluster", func() bool { return test.ready(c) })
			// At least the reaper's two shells and etcd.
			eventually(t, 10*time.Second, "three processes", func() bool { return len(c.processes()) >= 3 })
			c.kill()
			killed := time.Now()
			eventually(t, 15*time.Second, "all processes gone", func() bool { return len(c.processes()) == 0 })
			eventually(t, 15*time.Second, "folder gone", func() bool { return !c.has("") })
			t.Logf("gone %s after the kill", time.Since(killed).Round(time.Millisecond))
		})
	}
}

// child is a program that has a cluster.
type child struct {
	t       *testing.T
	dir     string
	command *exec.Cmd
	out     chan string
	groups  map[string]bool // process groups of the cluster
}

func startChild(t *testing.T) *child {
	executable, err := os.Executable()
	must(t, err)
	// A name that a shell would split.
	c := &child{
		t:       t,
		dir:     filepath.Join(t.TempDir(), `a "b" $(c)`),
		command: exec.Command(executable),
		out:     make(chan string, 1),
		groups:  map[string]bool{},
	}
	c.command.Env = append(os.Environ(), childVariable+"="+c.dir)
	c.command.Stderr = os.Stderr
	stdout, err := c.command.StdoutPipe()
	must(t, err)
	must(t, c.command.Start())
	t.Cleanup(func() { c.command.Process.Kill() })
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n') // empty when the child ends
		c.out <- strings.TrimSpace(line)
	}()
	return c
}

// said reports whether the child has printed the line.
func (c *child) said(want string) bool {
	select {
	case line := <-c.out:
		if line != want {
			c.t.Fatalf("the child said %q, not %q", line, want)
		}
		return true
	default:
		return false
	}
}

// has reports whether the cluster's folder has such a file.
func (c *child) has(name string) bool {
	_, err := os.Stat(filepath.Join(c.dir, name))
	return err == nil
}

func (c *child) kill() {
	must(c.t, c.command.Process.Kill())
	c.command.Wait()
}

// processes returns the processes whose arguments name the cluster's folder (the
// components and the janitor), and all of their process groups, now or earlier. Zombies
// do not count: their new parent has not waited for them yet.
func (c *child) processes() []string {
	out, err := exec.Command("ps", "-A", "-ww", "-o", "pid=", "-o", "pgid=", "-o", "stat=", "-o", "args=").Output()
	must(c.t, err)
	lines := strings.Split(string(out), "\n")
	for _, line := range lines {
		if strings.Contains(line, c.dir) {
			c.groups[strings.Fields(line)[1]] = true
		}
	}
	return slices.DeleteFunc(lines, func(line string) bool {
		fields := strings.Fields(line)
		return len(fields) < 3 || !c.groups[fields[1]] || fields[2][0] == 'Z'
	})
}

package cluster

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newTestSupervisor(t *testing.T) *supervisor {
	t.Helper()
	s, err := newSupervisor("", false)
	must(t, err)
	t.Cleanup(func() { _ = s.stop() }) // the tests check how the scripts end
	return s
}

func script(text string) *exec.Cmd { return exec.Command("/bin/sh", "-c", text) }

// startScript starts a script, and returns when it has written the line "ready".
func startScript(t *testing.T, s *supervisor, text string) *Process {
	t.Helper()
	p, err := s.start("script", script(text))
	must(t, err)
	eventually(t, 10*time.Second, "ready", func() bool {
		out, err := p.output()
		return err == nil && strings.Contains(out, "ready")
	})
	return p
}

// The end of a process decides the results of Wait and Stop.
func TestProcessEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		script string
		end    func(p *Process) error
		want   string // in the error; empty: no error
	}{
		{"by itself, with success", "echo ready", (*Process).Wait, ""},
		{"by itself, with a failure", "echo ready; exit 3", (*Process).Wait, "script ended: exit status 3; the end of its log:\nready"},
		{"when asked", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done", (*Process).Stop, ""},
		{"with a failure when asked, which is nobody's business", "trap 'exit 1' TERM; echo ready; while :; do sleep 0.1; done", (*Process).Stop, ""},
		{"killed because it does not listen", "trap '' TERM; echo ready; while :; do sleep 0.1; done", (*Process).Stop, "killed, as it had not ended in 5s"},
		{"killed on purpose", "trap '' TERM; echo ready; while :; do sleep 0.1; done", (*Process).Kill, ""},
		{"with a failure before it is asked", "echo ready; exit 3", func(p *Process) error { <-p.Exited(); return p.Stop() }, "exit status 3"},
		{"killed, and stopped afterwards", "echo ready; sleep 1000", func(p *Process) error { return errors.Join(p.Kill(), p.Stop()) }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := startScript(t, newTestSupervisor(t), test.script)
			err := test.end(p)
			if !p.Ended() {
				t.Error("it has not ended")
			}
			complains(t, err, test.want)
		})
	}
}

// The error has the exit code.
func TestProcessExitCode(t *testing.T) {
	p := startScript(t, newTestSupervisor(t), "echo ready; exit 3")
	if exit := new(exec.ExitError); !errors.As(p.Wait(), &exit) || exit.ExitCode() != 3 {
		t.Errorf("error: %v", p.Wait())
	}
}

// A process that is restarted under its name appends to the log; its errors quote only
// its own part, and at most twenty lines.
func TestProcessLog(t *testing.T) {
	s := newTestSupervisor(t)
	startScript(t, s, "echo first; echo ready").Wait()
	p := startScript(t, s, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22; do echo line $i; done; echo ready; exit 1")
	complains(t, p.Wait(), "its log:\nline 4\n")
	log, readErr := os.ReadFile(p.Log())
	if readErr != nil || !strings.HasPrefix(string(log), "first\n") || p.Log() != filepath.Join(s.folder, "script.log") {
		t.Errorf("log %s: %q, %v", p.Log(), log, readErr)
	}

	silent := startScript(t, s, "echo ready")
	silent.Wait()
	p, err := s.start("silent", script("exit 1"))
	must(t, err)
	if err := p.Wait(); err == nil || !strings.HasSuffix(err.Error(), "its log is empty") {
		t.Errorf("error: %v", err)
	}
}

// Processes stop in reverse order, because later ones may need earlier ones. A failure
// that no test has read is then reported.
func TestSupervisorStops(t *testing.T) {
	s := newTestSupervisor(t)
	order := filepath.Join(t.TempDir(), "order")
	for _, name := range []string{"a", "b", "c"} {
		text := "trap 'echo " + name + " >>" + order + "; exit' TERM; echo ready; while :; do sleep 0.1; done"
		startScript(t, s, text)
	}
	<-startScript(t, s, "echo ready; exit 4").Exited()
	complains(t, s.stop(), "exit status 4")
	if got, err := os.ReadFile(order); err != nil || string(got) != "c\nb\na\n" {
		t.Errorf("order: %q, %v", got, err)
	}
	isGone(t, s.folder)
	if _, err := s.start("late", script("true")); err == nil {
		t.Error("a process was started in a cluster that is stopped")
	}
}

// Nothing that existed before is ever removed.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600))
	_, err := newSupervisor(dir, false)
	complains(t, err, "is not empty")

	kept, err := newSupervisor(filepath.Join(t.TempDir(), "kept"), true)
	must(t, err)
	startScript(t, kept, "echo ready")
	if err := kept.stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(kept.folder, "script.log")); err != nil {
		t.Errorf("with Keep: %v", err)
	}
}

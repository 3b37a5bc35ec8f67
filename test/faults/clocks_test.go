package faults

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/faults/checker"
	"github.com/krake-observer/krake-observer/test/faults/results"
	"github.com/krake-observer/krake-observer/test/kit"
)

// clockVariable names the file by which a program with a clock of this file gets its time.
const clockVariable = "KRAKE_TEST_CLOCK"

// clock is the clock of some processes: the seconds by which it differs, in a file that they map.
type clock string

func newClock(t *testing.T) clock {
	t.Helper()
	c := clock(filepath.Join(t.TempDir(), "clock"))
	kit.Must(t, c.set(0))
	return c
}

// set moves the clock.
func (c clock) set(ahead time.Duration) error {
	file, err := os.OpenFile(string(c), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(int64(ahead/time.Second))), 0) //nolint:gosec // the bits of a number below 0
	return errors.Join(err, file.Close())
}

// jumping is a file of package time: it reads the difference.
const jumping = `package time

import (
	"syscall"
	"unsafe"
)

var ahead *int64

func init() {
	path, _ := syscall.Getenv("` + clockVariable + `")
	if path == "" {
		return
	}
	file, err := syscall.Open(path, syscall.O_RDONLY, 0)
	if err != nil {
		panic(err)
	}
	data, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	ahead = (*int64)(unsafe.Pointer(&data[0]))
}

func jumped() int64 {
	if ahead == nil {
		return 0
	}
	return *ahead
}
`

// withClock builds a program whose time.Now follows a [clock]. As with a clock that jumps, the time that
// timers use does not change.
func withClock(t *testing.T, module, what string, flags ...string) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	kit.Must(t, err)
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	kit.Must(t, err)
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(text), reads) != 1 {
		t.Fatalf("%s has not %q once", source, reads)
	}
	return buildWith(t, map[string]string{
		filepath.Join(source, "time.go"):   strings.Replace(string(text), reads, reads+"\tsec += jumped()\n", 1),
		filepath.Join(source, "jumped.go"): jumping,
	}, module, what, flags...)
}

// buildWith builds a program of a module with other texts for some source files, and returns its path.
func buildWith(t *testing.T, texts map[string]string, module, what string, flags ...string) string {
	t.Helper()
	folder, replaced := t.TempDir(), map[string]string{}
	for path, text := range texts {
		replaced[path] = filepath.Join(folder, filepath.Base(path))
		kit.Must(t, os.WriteFile(replaced[path], []byte(text), 0o600))
	}
	overlay, program := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "program")
	kit.Must(t, os.WriteFile(overlay, kit.JSON(t, map[string]any{"Replace": replaced}), 0o600))
	build := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"build"}, flags, []string{"-overlay", overlay, "-o", program, what})...)
	build.Dir = filepath.Join(checkout(t), module)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", what, err, said)
	}
	return program
}

// checkout returns the folder of the module.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}").Output()
	kit.Must(t, err)
	return strings.TrimSpace(string(root))
}

// jump returns the step of a tale at which a clock jumps: after a sentence. It jumps back after the next
// one, or after a second if there is none.
func (c clock) jump(ahead time.Duration, at int) func(context.Context, *app, int) error {
	return func(ctx context.Context, _ *app, now int) error {
		switch {
		case now == at && at == len(troubled.life)-1:
			return errors.Join(c.set(ahead), sleep(ctx, time.Second), c.set(0))
		case now == at:
			return c.set(ahead)
		}
		return c.set(0)
	}
}

// jumps returns the tales in which a clock jumps by an hour, either way.
func jumps(whose string, c clock) []*tale {
	var tales []*tale
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		for sentence := range troubled.life {
			tales = append(tales, &tale{
				Point: results.Point{
					Block: "servers", Scenario: troubled.name, Mode: fmt.Sprintf("the clock of the %s jumps by %s and back", whose, ahead),
					Place: fmt.Sprintf("sentence %d", sentence+1), Round: 1,
				},
				scenario: troubled, met: func() bool { return true }, after: c.jump(ahead, sentence),
			})
		}
	}
	return tales
}

// The clock of the agent or of the webhook jumps by an hour, either way, during the agent's work.
func TestClocksOfAgentAndWebhookJump(t *testing.T) {
	kit.Long(t, "clocks jump")
	if !isRelease() {
		t.Skip("make faults runs it: it compiles agent and webhook with another clock")
	}
	agents, webhooks := newClock(t), newClock(t)
	tales := remaining(append(jumps("agent", agents), jumps("webhook", webhooks)...))
	if len(tales) == 0 {
		return
	}
	t.Cleanup(func() { // the tests after this one get the webhook that is shipped
		kit.Must(t, env.installation.KillWebhook())
		kit.Must(t, env.installation.StartWebhook(context.WithoutCancel(t.Context())))
	})
	l := newLane(t, "clocks", resync, "--namespaces", "clocks")
	kit.Must(t, l.agent.kill())
	l.agent.program = withClock(t, ".", "./cmd/agent")
	t.Setenv(clockVariable, string(agents))
	kit.Must(t, l.agent.start())
	webhook := filepath.Join(filepath.Dir(env.installation.Manifests()), "webhook")
	kit.Must(t, os.Rename(webhook, webhook+".shipped"))
	t.Cleanup(func() { kit.Must(t, os.Rename(webhook+".shipped", webhook)) })
	t.Setenv(clockVariable, string(webhooks))
	kit.Must(t, env.installation.KillWebhook())
	kit.Must(t, os.Rename(withClock(t, ".", "./cmd/webhook"), webhook))
	kit.Must(t, env.installation.StartWebhook(t.Context()))
	t.Setenv(clockVariable, string(agents)) // for an agent that is started again
	playTales(t, []*lane{l}, tales)
	kit.Must(t, errors.Join(agents.set(time.Hour), webhooks.set(time.Hour)))
	a := l.newApp()
	kit.Must(t, creates("configmap one")(t.Context(), a))
	_, refused := env.CoreV1().ConfigMaps(a.Namespace).Create(t.Context(), kit.Application(a.Namespace, "refused", "5"), metav1.CreateOptions{})
	if refused == nil {
		t.Error("the webhook accepts a manifest without objects")
	}
	mustLogAnHourAhead(t, l.agent.name)
	mustLogAnHourAhead(t, "webhook-1")
	kit.Must(t, errors.Join(agents.set(0), webhooks.set(0)))
}

// mustLogAnHourAhead waits for a line in the log of a process whose time is an hour ahead.
func mustLogAnHourAhead(t *testing.T, process string) {
	t.Helper()
	times := regexp.MustCompile(`"time":"([^"]+)"`)
	kit.Eventually(t, func() string {
		text, err := os.ReadFile(filepath.Join(env.Dir(), process+".log"))
		kit.Must(t, err)
		for _, match := range times.FindAllSubmatch(text, -1) {
			at, err := time.Parse(time.RFC3339Nano, string(match[1]))
			kit.Must(t, err)
			if time.Until(at) > 50*time.Minute {
				return ""
			}
		}
		return "the clock of " + process + " does not jump"
	})
}

// The clock of the API server jumps by an hour, either way, and back. The audit log has that clock,
// which the checker needs. So only the end of each scenario is judged: that everything is as the user
// last asked for.
func TestTheClockOfTheAPIServerJumps(t *testing.T) {
	kit.Long(t, "clocks jump")
	if !isRelease() {
		t.Skip("make faults runs it: it compiles Kubernetes with another clock")
	}
	c := newClock(t)
	tales := remaining(jumps("API server", c))
	if len(tales) == 0 {
		return
	}
	flags, err := cluster.BuildFlags(t.Context())
	kit.Must(t, err)
	program := filepath.Join(t.TempDir(), "kube-apiserver") // it is several programs, and its name says which one it is
	kit.Must(t, os.Symlink(withClock(t, filepath.Join("test", "cluster", "kubernetes"), ".", flags...), program))
	former := env.Newest("kube-apiserver")
	t.Cleanup(func() { kit.Must(t, restartAPIServer(context.WithoutCancel(t.Context()), former.Command())) })
	command := former.Command()
	command.Path, command.Args[0] = program, program
	command.Env = append(command.Env, clockVariable+"="+string(c))
	kit.Must(t, restartAPIServer(t.Context(), command))
	l := newLane(t, "server-clock", resync, "--namespaces", "server-clock")
	for _, each := range tales {
		kit.Must(t, env.interrupted())
		jump := each.after
		each.after = func(ctx context.Context, a *app, now int) error {
			if err := jump(ctx, a, now); err != nil {
				return err
			}
			return errors.Join(sleep(ctx, 2*time.Second), c.set(0))
		}
		played := l.play(t.Context(), each)
		kit.Must(t, c.set(0))
		var violations []checker.Violation
		if played.err != nil {
			t.Errorf("%s: %v", each, played.err)
			violations = append(violations, checker.Violation{Invariant: "I1", What: played.err.Error()})
		}
		t.Logf("%s: %s", each, played.took.Round(time.Millisecond))
		record := recordOf(each.Point, true, played.took, violations)
		kit.Must(t, env.results.Add(&record))
	}
	kit.Must(t, c.set(time.Hour))
	created, err := env.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "later"}}, metav1.CreateOptions{})
	kit.Must(t, errors.Join(err, c.set(0)))
	if ahead := time.Until(created.CreationTimestamp.Time); ahead < 50*time.Minute {
		t.Errorf("the API server creates objects %s from now: its clock does not jump", ahead)
	}
}

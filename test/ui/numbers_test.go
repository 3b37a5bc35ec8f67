package ui

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/kit"
)

// While nothing changes, an open page costs the API server watches only.
func TestAnIdlePageOnlyWatches(t *testing.T) {
	needBrowser(t)
	const user, window = "uma", 40 * time.Second
	app := running(t)
	start := hub.Mark(t)
	s := serve(t, "-n", app.Namespace, "--as", user, "--as-group", "system:masters")
	object := s.another(t, s.open(t), objectPath(app, "apps/v1", "Deployment"))
	object.shows(`document.querySelector(".lens")`)
	time.Sleep(2 * time.Second) // what the pages need at first
	asUser := func(r kit.Request) bool { return r.As.Username == user }
	if len(start.Requests(t, asUser)) == 0 {
		t.Fatal("the audit log has no request of the page")
	}
	begin := hub.Mark(t)
	time.Sleep(window)
	requests := begin.Requests(t, asUser)
	for _, r := range requests {
		if r.Verb != "watch" {
			t.Errorf("an idle page requests %s %s", r.Verb, r.URI)
		}
	}
	t.Logf("%d requests in %s, with two pages open", len(requests), window)
}

// The command ends with Ctrl-C.
func TestItEndsWithAnInterrupt(t *testing.T) {
	s := serve(t, "-n", "default")
	kit.Must(t, s.process.Signal(os.Interrupt))
	kit.Eventually(t, func() string {
		if exec.CommandContext(t.Context(), "kill", "-0", fmt.Sprint(s.process.Pid)).Run() == nil && !isZombie(s.process.Pid) {
			return "it still runs"
		}
		return ""
	})
}

func isZombie(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(status), ") Z ")
}

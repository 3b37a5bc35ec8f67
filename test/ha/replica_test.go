package ha

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// replica is one more process of the local cluster's agent, with its own flags and
// token.
type replica struct {
	name, hub, credential string
	health, metrics       string
	arguments             []string
	process               *cluster.Process
}

// shortLease are flags for a Lease of 2 s.
var shortLease = []string{
	"--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1600ms", "--leader-elect-retry-period=400ms", "--heartbeat-interval=2s",
}

// unready returns which of the replicas are not ready, or nothing.
func unready(t *testing.T, replicas []*replica) string {
	t.Helper()
	var missing []string
	for _, r := range replicas {
		if code, text := r.ready(t, ""); code != http.StatusOK {
			missing = append(missing, fmt.Sprintf("%s is not ready: %d %s", r.name, code, text))
		}
	}
	return strings.Join(missing, "; ")
}

// newReplica makes a replica without starting it; "{hub}" in its arguments stands for
// the kubeconfig file for the hub.
func newReplica(t *testing.T, name string, arguments ...string) *replica {
	t.Helper()
	token := hub.Token(t, application.AgentsNamespace, application.LocalCluster)
	credential, err := installation.CredentialOf(token)
	kit.Must(t, err)
	ports, err := cluster.FreePorts(2)
	kit.Must(t, err)
	r := &replica{name: name, hub: filepath.Join(t.TempDir(), "kubeconfig"), credential: credential,
		health: fmt.Sprintf("127.0.0.1:%d", ports[0]), metrics: fmt.Sprintf("127.0.0.1:%d", ports[1])}
	kit.Must(t, hub.WriteKubeconfig(r.hub, application.LocalCluster, token))
	r.arguments = append([]string{"--health-probe-bind-address", r.health, "--metrics-bind-address", r.metrics}, arguments...)
	for i, argument := range r.arguments {
		r.arguments[i] = strings.ReplaceAll(argument, "{hub}", r.hub)
	}
	return r
}

// start starts the replica, and does not wait.
func (r *replica) start(t *testing.T) {
	t.Helper()
	var err error
	program := filepath.Join(hub.Dir(), "installation", "agent")
	r.process, err = hub.Run(r.name, exec.Command(program, r.arguments...))
	kit.Must(t, err)
}

// end asks the replica to end, if it runs.
func (r *replica) end(t *testing.T) {
	t.Helper()
	if r.process == nil {
		return
	}
	r.send(t, syscall.SIGCONT) // if it is paused
	if err := r.process.Stop(); err != nil {
		t.Error(err)
	}
	r.process = nil
}

// restartEnded restarts a replica that has ended, as the kubelet does.
func (r *replica) restartEnded(t *testing.T) (ended bool) {
	t.Helper()
	select {
	case <-r.process.Exited():
	default:
		return false
	}
	if err := r.process.Kill(); err != nil { // an ended process is no failure
		t.Fatal(err)
	}
	r.start(t)
	return true
}

func (r *replica) send(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(r.process.PID(), signal); err != nil && signal != syscall.SIGCONT {
		t.Fatalf("send %s to %s: %v", signal, r.name, err)
	}
}

// ready requests one of its readiness checks, or all.
func (r *replica) ready(t *testing.T, check string) (code int, text string) {
	t.Helper()
	return fetch(t, "http://"+r.health+"/readyz/"+check, "")
}

// metric returns the lines of one of its metrics.
func (r *replica) metric(t *testing.T, name, token string) []string {
	t.Helper()
	_, text := fetch(t, "https://"+r.metrics+"/metrics", token)
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return !strings.HasPrefix(line, name) })
}

// fetch returns the answer; code 0 means that there was none.
func fetch(t *testing.T, url, token string) (code int, text string) {
	t.Helper()
	code, text, err := kit.TryFetch(t.Context(), url, token)
	if err != nil {
		return 0, err.Error() // it does not listen yet
	}
	return code, text
}

// dismissAgents stops the agents that all tests share, until this test is over.
func dismissAgents(t *testing.T) {
	t.Helper()
	kit.Must(t, installed.StopAgent())
	t.Cleanup(func() {
		if err := installed.StartAgent(context.WithoutCancel(t.Context())); err != nil {
			t.Error(fmt.Errorf("start the agents again: %w", err))
		}
	})
}

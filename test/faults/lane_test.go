package faults

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
)

// lane is a cluster of its own name, although all are one: an agent that carries
// out its Applications and nobody else's, the proxy before it, and a namespace.
// What happens in one lane does not happen in another.
type lane struct {
	name, namespace string
	proxy           *proxy.Proxy
	agent           *agent
	apps            int // how many Applications there were
	// done are the Applications that are over, with the place among the calls
	// from which on nothing may be written for them.
	done map[string]int
}

// newLanes makes the lanes of a test that has many trials.
func newLanes(t *testing.T, name string, arguments ...string) []*lane {
	t.Helper()
	lanes := make([]*lane, 4)
	for i := range lanes {
		lanes[i] = newLane(t, fmt.Sprintf("%s-%d", name, i+1), arguments...)
	}
	return lanes
}

// newLane makes a lane whose agent runs.
func newLane(t *testing.T, name string, arguments ...string) *lane {
	t.Helper()
	if err := env.installation.Look(); err != nil {
		t.Fatal(err)
	}
	if err := appoint(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	direct, err := env.installation.AgentKubeconfig(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	through := filepath.Join(env.cluster.Dir(), name+".kubeconfig")
	p, err := proxy.Start(env.cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if err := p.WriteKubeconfig(direct, through); err != nil {
		t.Fatal(err)
	}
	l := &lane{name: name, namespace: name, proxy: p, done: map[string]int{}}
	l.agent = &agent{name: "agent-" + name, kubeconfig: through, arguments: append([]string{"--cluster", name}, arguments...)}
	if err := l.agent.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.agent.kill(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// appoint gives an agent its ServiceAccount and the shipped rights, and the lane
// its namespace.
func appoint(ctx context.Context, name string) error {
	account := application.AgentsNamespace + ":" + name
	return errors.Join(
		kubectl(ctx, "create", "namespace", name),
		kubectl(ctx, "create", "serviceaccount", name, "--namespace", application.AgentsNamespace),
		kubectl(ctx, "create", "clusterrolebinding", name+"-hub", "--clusterrole", "krake-agent-hub", "--serviceaccount", account),
		kubectl(ctx, "create", "clusterrolebinding", name+"-target", "--clusterrole", "krake-agent-target", "--serviceaccount", account),
		kubectl(ctx, "create", "role", name, "--namespace", application.AgentsNamespace,
			"--verb", "get,create,update", "--resource", "leases.coordination.k8s.io"), // which of them, the policy says
		kubectl(ctx, "create", "rolebinding", name, "--namespace", application.AgentsNamespace, "--role", name, "--serviceaccount", account),
	)
}

// kubectl runs kubectl as the administrator.
func kubectl(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, env.cluster.Kubectl(), append([]string{"--kubeconfig", env.cluster.Kubeconfig()}, arguments...)...)
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %v: %w\n%s", arguments, err, text)
	}
	return nil
}

// agent is the agent of a lane, as a process that is killed and started again.
type agent struct {
	name, kubeconfig string
	arguments        []string

	mu      sync.Mutex
	process *cluster.Process // nil while it is down
}

// start starts the agent unless it runs.
func (a *agent) start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.process != nil {
		return nil
	}
	process, err := env.installation.RunAgent(a.name, a.kubeconfig, a.arguments...)
	if err != nil {
		return err
	}
	a.process = process
	return nil
}

// kill ends the agent at once (SIGKILL).
func (a *agent) kill() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.process == nil {
		return nil
	}
	err := a.process.Kill()
	a.process = nil
	return err
}

func (a *agent) down() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.process == nil
}

// revive starts an agent again that could not begin, as a kubelet does, and gives
// an error if it has ended in any other way.
func (a *agent) revive() error {
	a.mu.Lock()
	process := a.process
	a.mu.Unlock()
	if process == nil {
		return nil
	}
	select {
	case <-process.Exited():
	default:
		return nil
	}
	if err := process.Wait(); err == nil || !strings.Contains(err.Error(), "agent: set up: ") {
		return fmt.Errorf("the agent has ended by itself: %w", err)
	}
	return errors.Join(a.kill(), a.start())
}

// pause is between two looks; silence is after how long without a call the agent
// is taken to be done for now.
const (
	pause   = 20 * time.Millisecond
	silence = 60 * time.Millisecond
)

// await looks whenever the agent is silent, until check finds nothing to
// complain about.
func (l *lane) await(ctx context.Context, check func(context.Context) error) error {
	deadline := time.Now().Add(timeout)
	for {
		complaint := errors.New("the agent is never silent")
		if l.proxy.Quiet() >= silence {
			if complaint = check(ctx); complaint == nil {
				return nil
			}
		}
		if err := l.agent.revive(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %w", timeout, complaint)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

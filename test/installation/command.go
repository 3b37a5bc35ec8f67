package installation

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
)

const (
	readyTimeout = 60 * time.Second
	pollInterval = 50 * time.Millisecond
)

// command is one of our commands as a process.
type command struct {
	process *cluster.Process
	health  string
}

// StartAgent starts the agent and waits until it is ready.
func (i *Installation) StartAgent(ctx context.Context) error {
	kubeconfig, err := i.AgentKubeconfig(ctx, application.LocalCluster)
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	i.agentMetrics = fmt.Sprintf("127.0.0.1:%d", port)
	i.agent, err = i.start("agent", "agent", append(
		[]string{"--kubeconfig", kubeconfig, "--metrics-bind-address", i.agentMetrics}, i.options.AgentArgs...)...)
	if err != nil {
		return err
	}
	return i.agent.waitReady(ctx)
}

// RunAgent starts one more agent, as a process of that name, and does not wait
// for it. It connects as the kubeconfig says, serves no metrics, and does not ask
// for the Lease: when it is killed its successor begins at once.
func (i *Installation) RunAgent(name, kubeconfig string, arguments ...string) (*cluster.Process, error) {
	c, err := i.start("agent", name, append(
		[]string{"--kubeconfig", kubeconfig, "--metrics-bind-address", "0", "--leader-elect=false"}, arguments...)...)
	if err != nil {
		return nil, err
	}
	return c.process, nil
}

// AgentKubeconfig writes a file by which the agent of a cluster connects. Of a
// cluster that is not the local one, the ServiceAccount must exist.
func (i *Installation) AgentKubeconfig(ctx context.Context, name string) (string, error) {
	return i.kubeconfig(ctx, application.AgentsNamespace, name)
}

// AgentMetrics is where the agent serves its metrics.
func (i *Installation) AgentMetrics() string { return i.agentMetrics }

// StopAgent stops the agent as a Deployment does: by SIGTERM.
func (i *Installation) StopAgent() error { return i.agent.process.Stop() }

// Logs are the files that webhook and agent log to.
func (i *Installation) Logs() []string {
	var logs []string
	for _, r := range i.replicas {
		logs = append(logs, filepath.Join(i.cluster.Dir(), r.name+".log"))
	}
	return append(logs, i.agent.process.Log())
}

// start starts one of the built programs as a process of that name.
func (i *Installation) start(program, name string, arguments ...string) (*command, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	health := fmt.Sprintf("127.0.0.1:%d", port)
	arguments = append(arguments, "--health-probe-bind-address", health)
	child := exec.Command(filepath.Join(i.dir, program), arguments...)
	child.Env = append(os.Environ(), "GOMEMLIMIT=200MiB") // as the shipped Deployments have it
	process, err := i.cluster.Run(name, child)
	if err != nil {
		return nil, err
	}
	return &command{process: process, health: health}, nil
}

func (c *command) waitReady(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.health+"/readyz", nil)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: time.Second}
	return poll(ctx, c.process.Name()+" is not ready, see "+c.process.Log(), func() bool {
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

// poll asks until the answer is yes, and gives up with the problem.
func poll(ctx context.Context, problem string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", problem, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
	return nil
}

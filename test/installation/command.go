package installation

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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

// startWebhook starts the webhook and waits until the API server calls it.
func (i *Installation) startWebhook(ctx context.Context, port int) error {
	kubeconfig, err := i.kubeconfig(ctx, "krake-system", "krake-webhook")
	if err != nil {
		return err
	}
	certificates := filepath.Join(i.dir, "certificates")
	if err := os.MkdirAll(certificates, 0o755); err != nil {
		return err
	}
	i.webhook, err = i.start("webhook", "--kubeconfig", kubeconfig, "--cert-dir", certificates,
		"--host", "127.0.0.1", "--port", strconv.Itoa(port))
	if err != nil {
		return err
	}
	if err := i.webhook.waitReady(ctx); err != nil {
		return err
	}
	return i.waitCalled(ctx)
}

// waitCalled waits until the API server has taken the configuration in: an
// Application that is wrong is then refused, and not by the API server itself.
func (i *Installation) waitCalled(ctx context.Context) error {
	const wrong = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
		"name": "krake-probe", "namespace": "default", "annotations": {"krake.dev/application": "v0"}}}`
	return poll(ctx, "the API server does not call the webhook", func() bool {
		probe := i.kubectl(ctx, "create", "--dry-run=server", "-f", "-")
		probe.Stdin = strings.NewReader(wrong)
		text, err := probe.CombinedOutput()
		return err != nil && strings.Contains(string(text), "Unsupported value")
	})
}

// StartAgent starts the agent and waits until it is ready.
func (i *Installation) StartAgent(ctx context.Context) error {
	kubeconfig, err := i.kubeconfig(ctx, "krake-agents", "local")
	if err != nil {
		return err
	}
	if i.agent, err = i.start("agent", "--kubeconfig", kubeconfig); err != nil {
		return err
	}
	return i.agent.waitReady(ctx)
}

// StopAgent stops the agent as a Deployment does: by SIGTERM.
func (i *Installation) StopAgent() error { return i.agent.process.Stop() }

// Logs are the files that webhook and agent log to.
func (i *Installation) Logs() []string {
	return []string{i.webhook.process.Log(), i.agent.process.Log()}
}

// start starts one of the built programs.
func (i *Installation) start(name string, arguments ...string) (*command, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	health := fmt.Sprintf("127.0.0.1:%d", port)
	arguments = append(arguments, "--health-probe-bind-address", health)
	process, err := i.cluster.Run(name, exec.Command(filepath.Join(i.dir, name), arguments...))
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

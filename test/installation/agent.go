package installation

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
)

// agent is one process of the agent of the local cluster. Which of several acts,
// the Lease decides.
type agent struct {
	name       string
	metrics    string
	credential string
	command    *command // nil while it is down
}

// StartAgent starts the agents that are down, all at once, and waits until they
// are ready. Each has a token of its own.
func (i *Installation) StartAgent(ctx context.Context) error {
	var started []*agent
	for _, a := range i.agents {
		if a.command != nil {
			continue
		}
		if err := i.startAgent(ctx, a); err != nil {
			return err
		}
		started = append(started, a)
	}
	for _, a := range started {
		if err := a.command.waitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (i *Installation) startAgent(ctx context.Context, a *agent) error {
	token, err := i.token(ctx, application.AgentsNamespace, application.LocalCluster)
	if err != nil {
		return err
	}
	if a.credential, err = CredentialOf(token); err != nil {
		return err
	}
	kubeconfig := filepath.Join(i.dir, a.name+".kubeconfig")
	if err := i.cluster.WriteKubeconfig(kubeconfig, application.LocalCluster, token); err != nil {
		return err
	}
	metrics, err := cluster.FreeAddress()
	if err != nil {
		return err
	}
	a.metrics = metrics
	a.command, err = i.start("agent", a.name, append(
		[]string{"--kubeconfig", kubeconfig, "--metrics-bind-address", a.metrics}, i.options.AgentArgs...)...)
	return err
}

// StopAgent stops the agents of these indices, or all, as a Deployment does: by
// SIGTERM.
func (i *Installation) StopAgent(indices ...int) error {
	return i.endAgents(indices, (*cluster.Process).Stop)
}

// KillAgent kills the agents of these indices, or all (SIGKILL).
func (i *Installation) KillAgent(indices ...int) error {
	return i.endAgents(indices, (*cluster.Process).Kill)
}

func (i *Installation) endAgents(indices []int, end func(*cluster.Process) error) error {
	var failures []error
	for index, a := range i.agents {
		if a.command != nil && isChosen(indices, index) {
			failures = append(failures, end(a.command.process))
			a.command = nil
		}
	}
	return errors.Join(failures...)
}

// AgentProcess is the agent of this index, nil while it is down.
func (i *Installation) AgentProcess(index int) *cluster.Process {
	if command := i.agents[index].command; command != nil {
		return command.process
	}
	return nil
}

// AgentCredential is by what the audit log tells the agent of this index from
// the others, which are the same user: the ID of its token, in the user's extra
// authentication.kubernetes.io/credential-id. Each start gives it another one.
func (i *Installation) AgentCredential(index int) string { return i.agents[index].credential }

// AgentMetrics is where the first agent serves its metrics.
func (i *Installation) AgentMetrics() string { return i.agents[0].metrics }

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

// CredentialOf is the name that the API server has for a token in its audit log: "JTI=" and
// its ID.
func CredentialOf(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errors.New("read the ID of a token: it has not three parts")
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("read the ID of a token: %w", err)
	}
	var claims struct {
		ID string `json:"jti"`
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		return "", fmt.Errorf("read the ID of a token: %w", err)
	}
	return "JTI=" + claims.ID, nil
}

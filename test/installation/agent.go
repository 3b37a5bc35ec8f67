package installation

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
)

// agent is one process of the local cluster's agent, or one with the Habitat controllers. A Lease
// decides which of several acts.
type agent struct {
	name       string
	metrics    string
	credential string
	// guard is the address of its guard, empty if it has none.
	guard   string
	command *command // nil while it is stopped
}

// StartAgent starts the stopped agents, all at once, and waits until they are ready.
// Each has its own token.
func (i *Installation) StartAgent(ctx context.Context) error {
	return startStopped(ctx, i.agents, i.startAgent, i.addGuard)
}

// startStopped starts the stopped processes, all at once, and waits until they are ready.
func startStopped(ctx context.Context, all []*agent, start func(context.Context, *agent) error, then func(*agent) error) error {
	stopped := slices.DeleteFunc(slices.Clone(all), func(a *agent) bool { return a.command != nil })
	for _, a := range stopped {
		if err := start(ctx, a); err != nil {
			return err
		}
	}
	for _, a := range stopped {
		if err := a.command.waitReady(ctx); err != nil {
			return err
		}
		if err := then(a); err != nil {
			return err
		}
	}
	return nil
}

func (i *Installation) startAgent(ctx context.Context, a *agent) error {
	kubeconfig, err := i.identify(ctx, a, application.AgentsNamespace, application.LocalCluster)
	if err != nil {
		return err
	}
	guard, err := i.guardArguments(a)
	if err != nil {
		return err
	}
	a.command, err = i.start("agent", a.name, slices.Concat(
		[]string{"--kubeconfig", kubeconfig, "--metrics-bind-address", a.metrics}, guard, i.options.AgentArgs)...)
	return err
}

// identify gives a process a token of the account, in a kubeconfig file, and an address for its metrics.
func (i *Installation) identify(ctx context.Context, a *agent, namespace, account string) (kubeconfig string, err error) {
	token, err := i.token(ctx, namespace, account)
	if err != nil {
		return "", err
	}
	if a.credential, err = CredentialOf(token); err != nil {
		return "", err
	}
	if a.metrics, err = cluster.FreeAddress(); err != nil {
		return "", err
	}
	kubeconfig = filepath.Join(i.dir, a.name+".kubeconfig")
	return kubeconfig, i.cluster.WriteKubeconfig(kubeconfig, account, token)
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
	return endAll(i.agents, indices, func(a *agent) error { return errors.Join(i.removeGuard(a), end(a.command.process)) })
}

// endAll ends the running processes of these indices, or all.
func endAll(all []*agent, indices []int, end func(*agent) error) error {
	var failures []error
	for index, a := range all {
		if a.command != nil && isChosen(indices, index) {
			failures = append(failures, end(a))
			a.command = nil
		}
	}
	return errors.Join(failures...)
}

// AgentProcess returns the agent of this index, nil while it is stopped.
func (i *Installation) AgentProcess(index int) *cluster.Process { return i.agents[index].process() }

func (a *agent) process() *cluster.Process {
	if a.command == nil {
		return nil
	}
	return a.command.process
}

// AgentCredential identifies the agent of this index in the audit log, because all
// agents are the same user. It is the ID of its token, in the user's extra
// authentication.kubernetes.io/credential-id, and changes with each start.
func (i *Installation) AgentCredential(index int) string { return i.agents[index].credential }

// AgentMetrics returns the address of the first agent's metrics.
func (i *Installation) AgentMetrics() string { return i.agents[0].metrics }

// RunAgent starts one more agent, as a process of that name, and does not wait for it.
// It connects as the kubeconfig says, serves no metrics, and uses no Lease: if it is
// killed, its successor acts at once.
func (i *Installation) RunAgent(name, kubeconfig string, arguments ...string) (*cluster.Process, error) {
	c, err := i.start("agent", name, append(
		[]string{"--kubeconfig", kubeconfig, "--metrics-bind-address", "0", "--leader-elect=false"}, arguments...)...)
	if err != nil {
		return nil, err
	}
	return c.process, nil
}

// AgentKubeconfig writes a kubeconfig file for the agent of a cluster. For another
// cluster than the local one, the ServiceAccount must exist.
func (i *Installation) AgentKubeconfig(ctx context.Context, name string) (string, error) {
	return i.kubeconfig(ctx, application.AgentsNamespace, name)
}

// CredentialOf returns the name of a token in the API server's audit log: "JTI=" and its
// ID.
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

package installation

import (
	"fmt"

	"github.com/krake-observer/krake-observer/test/cluster"
)

// guardPatches returns the patches of the overlay that make the API server call the guards.
func (i *Installation) guardPatches() string {
	if i.guards == nil {
		return ""
	}
	return fmt.Sprintf(`- target: {kind: ValidatingWebhookConfiguration}
  patch: |
    - {op: replace, path: /webhooks/0/clientConfig/service/port, value: %[1]d}
    - {op: replace, path: /webhooks/1/clientConfig/service/port, value: %[1]d}
- target: {kind: Service, name: krake-guard}
  patch: '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "krake-guard"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}'
`, i.guards.port)
}

// guardArguments returns the flags of an agent with a guard. Each start uses another port.
func (i *Installation) guardArguments(a *agent) ([]string, error) {
	if i.guards == nil {
		return nil, nil
	}
	var err error
	a.guard, err = cluster.FreeAddress()
	return []string{"--guard", "--guard-bind-address", a.guard}, err
}

func (i *Installation) addGuard(a *agent) error {
	if i.guards == nil {
		return nil
	}
	return i.guards.add(a.guard)
}

func (i *Installation) removeGuard(a *agent) error {
	if i.guards == nil {
		return nil
	}
	return i.guards.remove(a.guard)
}

// HangGuard lets the API server connect to the guard, and never get an answer.
func (i *Installation) HangGuard() error { return i.guards.hang() }

// RefuseGuard refuses connections to the guard.
func (i *Installation) RefuseGuard() error { return i.guards.refuse() }

// ResumeGuard ends HangGuard and RefuseGuard.
func (i *Installation) ResumeGuard() error { return i.guards.resume() }

// AgentMetricsURLs returns the addresses of the metrics of all agents.
func (i *Installation) AgentMetricsURLs() []string {
	var urls []string
	for _, a := range i.agents {
		urls = append(urls, "https://"+a.metrics+"/metrics")
	}
	return urls
}

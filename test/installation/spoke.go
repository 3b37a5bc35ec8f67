package installation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
)

// Spoke is a cluster that is enrolled at the hub, and the process of its agent.
// Its methods are safe for concurrent use.
type Spoke struct {
	// Name is the name of the cluster.
	Name string
	// Target and Hub are the kubeconfig files of the agent. If the hub is the target,
	// Hub is empty. A test may change where they lead before a start.
	Target, Hub string

	hub       *Installation
	arguments []string

	mu      sync.Mutex
	metrics string
	command *command // nil while it is stopped
}

// Enrolment configures the enrolment of a cluster.
type Enrolment struct {
	Name string
	// HubNamespaces have the cluster's Applications; by default one with its name.
	HubNamespaces []string
	EnrolArgs     []string // added to the command that enrols
	AgentArgs     []string // added to the flags of the agent
}

// Enrol enrols a cluster as an administrator does: with kubectl-krake on the hub, and
// with kubectl apply -k on the cluster. It does not start the agent. For the name
// local, the hub itself becomes a cluster, with the overlay of the options.
func (i *Installation) Enrol(ctx context.Context, target *cluster.Cluster, enrolment Enrolment) (*Spoke, error) {
	i.enrolling.Lock() // two kubectl apply at once would both create the objects that all agents of a target share
	defer i.enrolling.Unlock()
	s := &Spoke{Name: enrolment.Name, hub: i, arguments: enrolment.AgentArgs}
	s.Target = filepath.Join(i.dir, s.Name+"-target.kubeconfig")
	into := i.enrolHub
	if s.Name != application.LocalCluster {
		into = func(ctx context.Context) error { return i.enrol(ctx, s, target, enrolment) }
	}
	if err := into(ctx); err != nil {
		return nil, fmt.Errorf("enrol %s: %w", s.Name, err)
	}
	token, err := tokenOf(ctx, target, application.AgentsNamespace, s.Name)
	if err != nil {
		return nil, err
	}
	return s, target.WriteKubeconfig(s.Target, s.Name, token)
}

// enrolHub enrols the hub with its own agent.
func (i *Installation) enrolHub(ctx context.Context) error { return i.apply(ctx, i.local()) }

func (i *Installation) enrol(ctx context.Context, s *Spoke, target *cluster.Cluster, enrolment Enrolment) error {
	folder := filepath.Join(i.dir, s.Name)
	arguments := []string{"enrol", s.Name, "--kubeconfig", i.cluster.Kubeconfig(), "--out", folder}
	if len(enrolment.HubNamespaces) > 0 {
		arguments = append(arguments, "--hub-namespaces", strings.Join(enrolment.HubNamespaces, ","))
	}
	arguments = append(arguments, enrolment.EnrolArgs...)
	if err := output(exec.CommandContext(ctx, filepath.Join(i.dir, "kubectl-krake"), arguments...), i.log); err != nil {
		return err
	}
	if err := i.applyIdle(ctx, target, folder); err != nil {
		return err
	}
	s.Hub = filepath.Join(i.dir, s.Name+"-hub.kubeconfig")
	return errors.Join(mounted(filepath.Join(folder, "agent"), s.Hub), s.takeArguments(ctx, target))
}

// mounted writes a copy of the kubeconfig file of a folder. In a Pod the folder is
// mounted at a fixed path; the copy works anywhere.
func mounted(folder, to string) error {
	config, err := clientcmd.LoadFromFile(filepath.Join(folder, "kubeconfig"))
	if err != nil {
		return fmt.Errorf("read what was enrolled: %w", err)
	}
	for _, user := range config.AuthInfos {
		user.TokenFile = filepath.Join(folder, user.TokenFile)
	}
	return clientcmd.WriteToFile(*config, to)
}

// takeArguments copies the flags of the applied Deployment, except the path of the
// kubeconfig file.
func (s *Spoke) takeArguments(ctx context.Context, target *cluster.Cluster) error {
	arguments, err := argumentsOf(ctx, target, application.AgentsNamespace, "krake-agent-"+s.Name)
	if err != nil {
		return err
	}
	arguments = slices.DeleteFunc(arguments, func(argument string) bool { return strings.HasPrefix(argument, "--hub-kubeconfig=") })
	s.arguments = append(arguments, s.arguments...)
	return nil
}

// argumentsOf returns the flags in an applied Deployment.
func argumentsOf(ctx context.Context, in *cluster.Cluster, namespace, name string) (arguments []string, err error) {
	text, err := kubectl(ctx, in, "get", "deployment", name, "--namespace", namespace, "--output", "jsonpath={.spec.template.spec.containers[0].args}").Output()
	if err == nil {
		err = json.Unmarshal(text, &arguments)
	}
	if err != nil {
		return nil, fmt.Errorf("read the flags of %s: %w", name, err)
	}
	return arguments, nil
}

// applyIdle applies the enrolment without Pods, because the agent is a process here.
func (i *Installation) applyIdle(ctx context.Context, target *cluster.Cluster, folder string) error {
	idle := folder + "-idle"
	if err := os.MkdirAll(idle, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../%s]
patches:
- target: {kind: Deployment}
  patch: '[{"op": "replace", "path": "/spec/replicas", "value": 0}]'
`, filepath.Base(folder))
	if err := os.WriteFile(filepath.Join(idle, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		return err
	}
	return output(kubectl(ctx, target, "apply", "-k", idle), i.log)
}

// Start starts the agent unless it runs, and waits until it is ready.
func (s *Spoke) Start(ctx context.Context) error {
	command, err := s.begin()
	if err != nil {
		return err
	}
	return command.waitReady(ctx)
}

// Begin starts the agent unless it runs, and does not wait for it.
func (s *Spoke) Begin() error {
	_, err := s.begin()
	return err
}

func (s *Spoke) begin() (*command, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.command != nil {
		return s.command, nil
	}
	metrics, err := cluster.FreeAddress()
	if err != nil {
		return nil, err
	}
	s.metrics = metrics
	arguments := []string{"--kubeconfig", s.Target, "--metrics-bind-address", s.metrics}
	if s.Hub != "" {
		arguments = append(arguments, "--hub-kubeconfig", s.Hub)
	}
	s.command, err = s.hub.start("agent", s.process(), append(arguments, s.arguments...)...)
	return s.command, err
}

// Kill ends the agent at once (SIGKILL), if it runs.
func (s *Spoke) Kill() error { return s.end((*cluster.Process).Kill) }

// Stop asks the agent to end (SIGTERM), if it runs.
func (s *Spoke) Stop() error { return s.end((*cluster.Process).Stop) }

func (s *Spoke) end(how func(*cluster.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.command == nil {
		return nil
	}
	err := how(s.command.process)
	s.command = nil
	return err
}

// IsReady reports whether the agent runs and is ready.
func (s *Spoke) IsReady(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.command != nil && s.command.isReady(ctx, readyTimeout) // a busy machine answers late
}

// Metrics returns the address of the agent's metrics, which have a self-signed
// certificate; empty before the first start.
func (s *Spoke) Metrics() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.metrics
}

// Log returns the path of the agent's log.
func (s *Spoke) Log() string { return filepath.Join(s.hub.cluster.Dir(), s.process()+".log") }

func (s *Spoke) process() string { return "agent-" + s.Name }

// Process returns the agent's process, nil while it is stopped.
func (s *Spoke) Process() *cluster.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.command == nil {
		return nil
	}
	return s.command.process
}

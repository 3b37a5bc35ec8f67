package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
)

// Pods are webhook and agent as users run them: in Pods, from the output of
// manifests/render for manifests/overlays/default, with an image that the nodes have.
// They need a cluster with a kubelet.
type Pods struct {
	image string
	// beside has everything that is no Pod: the folder, the log, and agents of
	// [Pods.RunAgent].
	beside *Installation
}

// Deployment is a Deployment of the installation.
type Deployment struct{ Namespace, Name string }

// The Deployments of the installation.
var (
	WebhookDeployment = Deployment{application.SystemNamespace, "krake-webhook"}
	AgentDeployment   = Deployment{application.AgentsNamespace, "krake-agent"}
)

// selector returns the flags of kubectl that select the Pods of a Deployment, and its
// namespace.
func (d Deployment) selector() []string {
	return []string{"--namespace", d.Namespace, "--selector", "app.kubernetes.io/name=" + d.Name}
}

// InstallPods applies the manifests with an image, as NAME:TAG or NAME@DIGEST. It
// returns when all Pods are ready and the API server calls the webhook. It logs its
// steps.
func InstallPods(ctx context.Context, in *cluster.Cluster, image string, log io.Writer) (*Pods, error) {
	p := &Pods{
		image:  image,
		beside: &Installation{cluster: in, log: log, dir: filepath.Join(in.Dir(), "installation")},
	}
	if !in.HasKubelet() {
		return nil, fmt.Errorf("install %s: the cluster has no node that is ready, so that no Pod would run", image)
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"build the agent of tests that run one beside the Pods", p.build},
		{"apply manifests/overlays/default with image " + image, p.apply},
		{"wait for the webhook's Pods", WebhookDeployment.rolledOut(p)},
		{"wait for the policies", p.beside.waitEnforced},
		{"wait for the agent's Pods", AgentDeployment.rolledOut(p)},
		{"wait for the API server to call the webhook", p.beside.WaitCalled},
	} {
		fmt.Fprintf(log, "installation: %s\n", step.what)
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.what, errors.Join(err, p.describe(ctx)))
		}
	}
	return p, nil
}

func (p *Pods) build(ctx context.Context) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	p.beside.root = root
	return p.beside.compile(ctx, p.beside.dir+string(filepath.Separator), "./cmd/agent")
}

// apply applies the manifests. It replaces existing Pods, because the image of the same
// name may have changed.
func (p *Pods) apply(ctx context.Context) error {
	file := filepath.Join(p.beside.dir, "install.yaml")
	render := exec.CommandContext(ctx, "go", "run", "./manifests/render", "--image", p.image)
	render.Dir = p.beside.root
	text, err := render.Output()
	if err != nil {
		return fmt.Errorf("render the manifests: %w", withStderr(err))
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	there := p.kubectl(ctx, "get", "deployment", WebhookDeployment.Name, "--namespace", WebhookDeployment.Namespace).Run() == nil
	if err := output(p.kubectl(ctx, "apply", "--filename", file), p.beside.log); err != nil || !there {
		return err
	}
	return errors.Join(p.Restart(ctx, WebhookDeployment), p.Restart(ctx, AgentDeployment))
}

// withStderr adds a command's stderr to its error.
func withStderr(err error) error {
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	return err
}

// Restart replaces the Pods of a Deployment one after the other, as kubectl rollout
// restart does, and does not wait.
func (p *Pods) Restart(ctx context.Context, d Deployment) error {
	return output(p.kubectl(ctx, "rollout", "restart", "deployment/"+d.Name, "--namespace", d.Namespace), p.beside.log)
}

// WaitRolledOut waits until all Pods of a Deployment are current, and ready.
func (p *Pods) WaitRolledOut(ctx context.Context, d Deployment) error {
	return output(p.kubectl(ctx, "rollout", "status", "deployment/"+d.Name, "--namespace", d.Namespace, "--timeout", rolloutTimeout), p.beside.log)
}

// rolloutTimeout is long: former Pods have 45 s to end.
const rolloutTimeout = "180s"

func (d Deployment) rolledOut(p *Pods) func(context.Context) error {
	return func(ctx context.Context) error { return p.WaitRolledOut(ctx, d) }
}

// describe shows the state of Pods that do not become ready.
func (p *Pods) describe(ctx context.Context) error {
	var failures []error
	for _, d := range []Deployment{WebhookDeployment, AgentDeployment} {
		text, err := p.kubectl(ctx, append([]string{"describe", "pods"}, d.selector()...)...).CombinedOutput()
		fmt.Fprintf(p.beside.log, "%s\n", text)
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// Names returns the Pods of a Deployment, except those that are being deleted.
func (p *Pods) Names(ctx context.Context, d Deployment) ([]string, error) {
	text, err := p.kubectl(ctx, append([]string{"get", "pods", "--output",
		`jsonpath={range .items[*]}{.metadata.name}{" "}{.metadata.deletionTimestamp}{"\n"}{end}`}, d.selector()...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("list the Pods of %s: %w", d.Name, withStderr(err))
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if name, deleted, _ := strings.Cut(strings.TrimSpace(line), " "); deleted == "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// StopAgent scales the agent's Deployment to zero, and returns when the Pods are gone.
// It cannot select single Pods.
func (p *Pods) StopAgent(indices ...int) error {
	if len(indices) > 0 {
		return fmt.Errorf("stop agents %v: in Pods there is but one Deployment of all: name none", indices)
	}
	return p.Stop(AgentDeployment)
}

// Stop scales a Deployment to zero, and returns when the Pods are gone.
func (p *Pods) Stop(d Deployment) error {
	return errors.Join(p.scale(d, "0"), output(kubectlNow(p.beside.cluster, append([]string{
		"wait", "pods", "--for=delete", "--timeout", rolloutTimeout}, d.selector()...)...), p.beside.log))
}

// StartAgent undoes [Pods.StopAgent], and waits until the agents are ready.
func (p *Pods) StartAgent(ctx context.Context) error { return p.Start(ctx, AgentDeployment) }

// Start scales a Deployment to the replicas of the manifests, and waits until they are
// ready.
func (p *Pods) Start(ctx context.Context, d Deployment) error {
	if err := p.scale(d, "2"); err != nil {
		return err
	}
	return p.WaitRolledOut(ctx, d)
}

func (p *Pods) scale(d Deployment, replicas string) error {
	return output(kubectlNow(p.beside.cluster, "scale", "deployment/"+d.Name, "--namespace", d.Namespace, "--replicas", replicas), p.beside.log)
}

// Image returns the image of the Pods.
func (p *Pods) Image() string { return p.image }

// AgentKubeconfig writes a kubeconfig file for an agent beside the Pods.
func (p *Pods) AgentKubeconfig(ctx context.Context, name string) (string, error) {
	return p.beside.AgentKubeconfig(ctx, name)
}

// RunAgent starts one more agent, as a process of this machine: see
// [Installation.RunAgent].
func (p *Pods) RunAgent(name, kubeconfig string, arguments ...string) (*cluster.Process, error) {
	return p.beside.RunAgent(name, kubeconfig, arguments...)
}

// LogFiles writes the logs of the existing Pods into files. The logs of deleted Pods
// are lost.
func (p *Pods) LogFiles(ctx context.Context) ([]string, error) {
	var files []string
	for _, d := range []Deployment{WebhookDeployment, AgentDeployment} {
		names, err := p.Names(ctx, d)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := p.kubectl(ctx, "logs", name, "--namespace", d.Namespace).Output()
			if err != nil {
				return nil, fmt.Errorf("read the log of %s: %w", name, withStderr(err))
			}
			file := filepath.Join(p.beside.cluster.Dir(), name+".log")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				return nil, err
			}
			files = append(files, file)
		}
	}
	return files, nil
}

// MetricsURLs returns the addresses of the Pods' metrics, each at a port of this
// machine, while the context lasts.
func (p *Pods) MetricsURLs(ctx context.Context) ([]string, error) {
	var urls []string
	for _, d := range []Deployment{WebhookDeployment, AgentDeployment} {
		names, err := p.Names(ctx, d)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			address, err := p.Forward(ctx, d, name, "8443")
			if err != nil {
				return nil, err
			}
			urls = append(urls, "https://"+address+"/metrics")
		}
	}
	return urls, nil
}

// Forward returns an address of this machine that leads to a port of a Pod, while the
// context lasts.
func (p *Pods) Forward(ctx context.Context, d Deployment, name, port string) (string, error) {
	address, err := cluster.FreeAddress()
	if err != nil {
		return "", err
	}
	_, local, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	process, err := p.beside.cluster.Run("forward-"+name, kubectlNow(p.beside.cluster,
		"port-forward", "pod/"+name, local+":"+port, "--namespace", d.Namespace))
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() {
		if err := process.Kill(); err != nil {
			fmt.Fprintf(p.beside.log, "installation: %v\n", err)
		}
	})
	return address, poll(ctx, "nothing leads to port "+port+" of Pod "+name+", see "+process.Log(), func() bool {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		return err == nil && connection.Close() == nil
	})
}

func (p *Pods) kubectl(ctx context.Context, arguments ...string) *exec.Cmd {
	return p.beside.kubectl(ctx, arguments...)
}

// kubectlNow is a call that ends when it is done, or with the cluster.
func kubectlNow(in *cluster.Cluster, arguments ...string) *exec.Cmd {
	return exec.Command(in.Kubectl(), slices.Concat([]string{"--kubeconfig", in.Kubeconfig()}, arguments)...)
}

// Package installation installs webhook and agent into a test cluster as users do, with
// kubectl from the files in manifests/. It runs the commands as processes beside
// the cluster. Each uses a token of its own ServiceAccount, so that the tests use the
// shipped RBAC.
package installation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/cluster"
)

// Installation is webhook and agent in a cluster, one or several of each.
type Installation struct {
	cluster *cluster.Cluster
	log     io.Writer
	// dir has the programs, the manifests and the kubeconfig files.
	dir string
	// root is the checkout with the source of the programs.
	root string

	options  Options
	agents   []*agent
	habitats []*agent
	replicas []*replica
	// balancer is the address at which the API server calls the webhook, and guards the one at which
	// it calls the guard.
	balancer, guards *balancer
	// enrolling lets one cluster enrol at a time.
	enrolling sync.Mutex
}

// Options configure an installation. The zero value is the usual one.
type Options struct {
	Replicas    int      // of the webhook; one if not set
	Agents      int      // of the local cluster; one if not set
	WebhookArgs []string // added to the flags of the webhook
	AgentArgs   []string // added to the flags of the agent
	Habitats    int      // processes with the Habitat controllers; the overlay must have them
	HabitatArgs []string // added to their flags
	// Source is another checkout, with the programs and the manifests of another version.
	Source string
	// Hub: only webhook and policies. The agents belong to other clusters.
	Hub bool
	// Overlay is the folder of manifests/overlays for a cluster with its own agent; by
	// default overlays/e2e. Its flags are not used, except those of the Habitat
	// controllers.
	Overlay string
	// Guard makes the local agents serve the guard. Its overlay is overlays/guard by default.
	Guard bool
	// AgentProgram is the package of a program that replaces the agent's.
	AgentProgram string
}

// Install builds the commands, applies the manifests, and starts webhook and agent.
// It returns when both are ready and the API server calls the webhook. It logs its
// steps.
func Install(ctx context.Context, in *cluster.Cluster, log io.Writer) (*Installation, error) {
	return InstallWith(ctx, in, Options{}, log)
}

// InstallWith is [Install] with options.
func InstallWith(ctx context.Context, in *cluster.Cluster, options Options, log io.Writer) (*Installation, error) {
	balancer, err := startBalancer()
	if err != nil {
		return nil, err
	}
	i := &Installation{
		cluster: in, log: log, dir: filepath.Join(in.Dir(), "installation"), options: options, balancer: balancer,
	}
	if options.Guard {
		if i.guards, err = startBalancer(); err != nil {
			return nil, err
		}
	}
	for n := range max(1, options.Replicas) {
		i.replicas = append(i.replicas, &replica{name: fmt.Sprintf("webhook-%d", n+1)})
	}
	if !options.Hub {
		for n := range max(1, options.Agents) {
			i.agents = append(i.agents, &agent{name: fmt.Sprintf("agent-%d", n+1)})
		}
	}
	for n := range options.Habitats {
		i.habitats = append(i.habitats, &agent{name: fmt.Sprintf("habitat-%d", n+1)})
	}
	type step struct {
		what string
		do   func(context.Context) error
	}
	steps := []step{
		{"build the commands", i.build},
		{"apply manifests/overlays/" + i.overlay(), i.Apply},
		{"start the webhook", i.StartWebhook},
		{"wait for the policies", i.waitEnforced},
		{"start the agent", i.StartAgent},
	}
	if options.Habitats > 0 {
		steps = append(steps, step{"start what carries out Habitats", i.StartHabitat})
	}
	for _, step := range steps {
		fmt.Fprintf(log, "installation: %s\n", step.what)
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return i, nil
}

// Use replaces the programs and the manifests by those of another checkout, "" for that of the
// caller. What runs or is applied stays until it is started or applied again.
func (i *Installation) Use(ctx context.Context, source string) error {
	i.options.Source = source
	for _, old := range []string{"webhook", "agent", "habitat", "kubectl-krake", "manifests"} {
		if err := os.RemoveAll(filepath.Join(i.dir, old)); err != nil {
			return err
		}
	}
	return i.build(ctx)
}

// build compiles the commands from the checkout that the caller runs from, or from another one.
func (i *Installation) build(ctx context.Context) error {
	if i.options.Source != "" {
		i.root = i.options.Source
		built := filepath.Join(i.root, "built")
		if _, err := os.Stat(built); err != nil { // the first use
			// The checkout is in a temporary folder: with its path in them, packages would be compiled each time.
			if err := i.compile(ctx, built+string(filepath.Separator), commands, "-trimpath"); err != nil {
				return err
			}
		}
		return i.link(built)
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	i.root = root
	if err := i.programs(ctx); err != nil || i.options.AgentProgram == "" {
		return err
	}
	agent := filepath.Join(i.dir, "agent")
	if err := os.Remove(agent); err != nil { // it may be a link to the shared one
		return err
	}
	return i.compile(ctx, agent, i.options.AgentProgram)
}

// programsVariable names a folder with the commands of this checkout, already built: make
// builds them once for all suites.
const programsVariable = "KRAKE_TEST_PROGRAMS"

// commands selects the packages of the commands.
const commands = "./cmd/..."

// programs puts the commands into the folder of the installation.
func (i *Installation) programs(ctx context.Context) error {
	built := os.Getenv(programsVariable)
	if built == "" {
		return i.compile(ctx, i.dir+string(filepath.Separator), commands)
	}
	if err := i.link(built); err != nil {
		return fmt.Errorf("%s: %w", programsVariable, err)
	}
	return nil
}

// link puts links to the built programs into the folder of the installation.
func (i *Installation) link(built string) error {
	entries, err := os.ReadDir(built)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(i.dir, 0o755); err != nil {
		return err
	}
	for _, entry := range entries {
		link := filepath.Join(i.dir, entry.Name())
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Symlink(filepath.Join(built, entry.Name()), link); err != nil {
			return err
		}
	}
	return nil
}

// compile builds without debug information, which is quicker to link.
func (i *Installation) compile(ctx context.Context, to, what string, flags ...string) error {
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-ldflags=-w", "-o", to}, flags, []string{what})...)
	build.Dir = i.root
	return output(build, i.log)
}

// moduleRoot finds this module by its name, because a caller in test/bench is in
// another module.
func moduleRoot(ctx context.Context) (string, error) {
	text, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/krake-observer/krake-observer").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Apply writes the embedded manifests to a folder, adds the port, and applies them with
// kubectl. A second call restores changed and deleted objects.
func (i *Installation) Apply(ctx context.Context) error { return i.apply(ctx, i.overlay()) }

func (i *Installation) apply(ctx context.Context, what string) error {
	folder := i.Manifests()
	if err := extract(i.files(), folder); err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	overlay := filepath.Join(folder, "run")
	if err := os.MkdirAll(overlay, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../overlays/%s]
patches:
- target: {kind: MutatingWebhookConfiguration}
  patch: '[{"op": "replace", "path": "/webhooks/0/clientConfig/service/port", "value": %d}]'
- target: {kind: Service, name: krake-webhook}
  patch: '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "krake-webhook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}'
- target: {kind: Deployment}
  patch: '[{"op": "replace", "path": "/spec/replicas", "value": 0}]'
%s`, what, i.balancer.port, i.guardPatches())
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		return err
	}
	return output(i.kubectl(ctx, "apply", "-k", overlay), i.log)
}

// overlay returns the overlay of the cluster. A hub has the patches of overlays/e2e
// only from [Installation.Apply].
func (i *Installation) overlay() string {
	if i.options.Hub {
		return "hub"
	}
	return i.local()
}

// local returns the overlay of a cluster with its own agent.
func (i *Installation) local() string {
	usual := "e2e"
	if i.options.Guard {
		usual = "guard"
	}
	return cmp.Or(i.options.Overlay, usual)
}

// Manifests returns the folder with the shipped files.
func (i *Installation) Manifests() string { return filepath.Join(i.dir, "manifests") }

// files returns the shipped manifests.
func (i *Installation) files() fs.FS {
	if i.options.Source != "" {
		return os.DirFS(filepath.Join(i.options.Source, "manifests"))
	}
	return manifests.Files
}

func extract(files fs.FS, folder string) error {
	return fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(folder, path)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
}

// kubeconfig writes a kubeconfig file for a ServiceAccount.
func (i *Installation) kubeconfig(ctx context.Context, namespace, account string) (string, error) {
	token, err := i.token(ctx, namespace, account)
	if err != nil {
		return "", err
	}
	path := filepath.Join(i.dir, namespace+"-"+account+".kubeconfig")
	return path, i.cluster.WriteKubeconfig(path, account, token)
}

// token makes a new token of a ServiceAccount.
func (i *Installation) token(ctx context.Context, namespace, account string) (string, error) {
	return tokenOf(ctx, i.cluster, namespace, account)
}

func tokenOf(ctx context.Context, in *cluster.Cluster, namespace, account string) (string, error) {
	client, err := kubernetes.NewForConfig(in.RESTConfig())
	if err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a token of %s/%s: %w", namespace, account, err)
	}
	return token.Status.Token, nil
}

func (i *Installation) kubectl(ctx context.Context, arguments ...string) *exec.Cmd {
	return kubectl(ctx, i.cluster, arguments...)
}

func kubectl(ctx context.Context, in *cluster.Cluster, arguments ...string) *exec.Cmd {
	arguments = append([]string{"--kubeconfig", in.Kubeconfig()}, arguments...)
	return exec.CommandContext(ctx, in.Kubectl(), arguments...)
}

// output runs a command, and logs its output only if it fails.
func output(command *exec.Cmd, log io.Writer) error {
	text, err := command.CombinedOutput()
	if err != nil {
		fmt.Fprintf(log, "%s\n", text)
		return fmt.Errorf("%s: %w", filepath.Base(command.Path), err)
	}
	return nil
}

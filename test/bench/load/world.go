package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// module is the path of the product's module.
const module = "github.com/krake-observer/krake-observer"

// auditPolicy omits the bodies: requests are only counted.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// contendersUser is the user of all contenders except our agent: the ServiceAccount
// contender in the namespace of the same name.
const (
	contenderAccount = "contender"
	contendersUser   = "system:serviceaccount:" + contenderAccount + ":" + contenderAccount
)

// world is a cluster in which the contenders run in turn.
type world struct {
	Options

	cluster    *cluster.Cluster
	ours       *installation.Installation
	client     kubernetes.Interface
	metadata   metadata.Interface
	kubeconfig string // of the contenders
	report     *report
	log        io.Writer

	// running is the contender that guards, and process is its process unless it is our
	// agent.
	running string
	guarded *set
	process *cluster.Process
}

// open starts a cluster with our webhook and a stopped agent.
func open(ctx context.Context, options Options, in installation.Options, r *report, log io.Writer) (w *world, err error) {
	// No controller reacts to a change of a Deployment: each event is a drift, a repair,
	// or an unnecessary write of a contender.
	c, err := cluster.Start(ctx, cluster.Options{
		Log: log, AuditPolicy: auditPolicy, ControllerArgs: []string{"--controllers", "*,-deployment-controller,-replicaset-controller"},
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	w = &world{Options: options, cluster: c, report: r, log: log, running: nothing}
	if w.client, err = workload.NewClient(c.RESTConfig()); err != nil {
		return nil, err
	}
	if w.metadata, err = metadata.NewForConfig(c.RESTConfig()); err != nil {
		return nil, err
	}
	ctrl.SetLogger(logr.Discard()) // it would only warn that it was not called
	if w.ours, err = installation.InstallWith(ctx, c, in, log); err != nil {
		return nil, err
	}
	return w, errors.Join(w.ours.StopAgent(), w.build(ctx), w.admit(ctx))
}

func (w *world) close() error {
	return errors.Join(w.stop(), w.cluster.Stop())
}

// build builds the contenders.
func (w *world) build(ctx context.Context) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	bench := filepath.Join(strings.TrimSpace(string(root)), "test", "bench")
	programs := map[string][2]string{floor: {bench, "./floor"}}
	if w.has(gitops) {
		programs[gitops] = [2]string{bench, "./gitops"}
	}
	if w.has(former) {
		programs[former] = [2]string{w.Former, "./cmd/agent"}
	}
	if err := errors.Join(os.Mkdir(filepath.Dir(w.program(ours)), 0o755), os.Rename(w.installed(), w.program(ours))); err != nil {
		return err
	}
	for name, source := range programs {
		build := exec.CommandContext(ctx, "go", "build", "-o", w.program(name), source[1])
		build.Dir = source[0]
		if text, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s in %s: %w\n%s", source[1], source[0], err, text)
		}
	}
	return nil
}

// program returns the file of a contender's program.
func (w *world) program(contender string) string {
	return filepath.Join(w.cluster.Dir(), "contenders", contender)
}

// installed is the file of the agent that the installation starts.
func (w *world) installed() string { return filepath.Join(w.cluster.Dir(), "installation", "agent") }

// use makes one of our two agents the one that the installation starts.
func (w *world) use(agent string) error {
	if err := os.Remove(w.installed()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(w.program(agent), w.installed())
}

// admit creates the namespaces, and an account with all rights for the contenders, which
// authenticates as our agent's does.
func (w *world) admit(ctx context.Context) error {
	objects := contender
	for i := range namespaces {
		objects += fmt.Sprintf("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespaceOf(i))
	}
	if text, err := kit.TryKubectl(ctx, w.cluster, objects, "apply", "-f", "-"); err != nil {
		return fmt.Errorf("make the contenders' objects: %w\n%s", err, text)
	}
	token, err := kit.TryKubectl(ctx, w.cluster, "", "create", "token", contenderAccount, "-n", contenderAccount, "--duration", "24h")
	if err != nil {
		return fmt.Errorf("make the contenders' token: %w\n%s", err, token)
	}
	w.kubeconfig = filepath.Join(w.cluster.Dir(), "contender.kubeconfig")
	return w.cluster.WriteKubeconfig(w.kubeconfig, contenderAccount, strings.TrimSpace(token))
}

const contender = `apiVersion: v1
kind: Namespace
metadata: {name: contender}
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: contender, name: contender}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: contender}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, namespace: contender, name: contender}]
`

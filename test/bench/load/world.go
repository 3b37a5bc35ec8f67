package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// module is the one of the product, wherever it is.
const module = "github.com/krake-observer/krake-observer"

// auditPolicy leaves the bodies out: requests are counted, not read.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// contendersUser is whoever is no agent of ours: the ServiceAccount contender in
// the namespace of the same name.
const (
	contenderAccount = "contender"
	contendersUser   = "system:serviceaccount:" + contenderAccount + ":" + contenderAccount
	oursUser         = "system:serviceaccount:krake-agents:local"
)

// world is a cluster in which the contenders take turns.
type world struct {
	Options

	cluster    *cluster.Cluster
	ours       *installation.Installation
	clients    workload.Clients
	metadata   metadata.Interface
	programs   string // the folder with the contenders'
	kubeconfig string // theirs
	report     *report
	log        io.Writer

	// running is who guards, and process what it is unless it is our agent.
	running string
	guarded *set
	process *cluster.Process
	// settled is the memory of our agent, by how many objects there are.
	settled map[int]int64
}

// open starts a cluster with our webhook and agent, the agent being stopped.
func open(ctx context.Context, options Options, r *report, log io.Writer) (w *world, err error) {
	// No controller answers a change of a Deployment: each event that is seen is that of
	// a drift, of a repair, or of a contender that writes too much.
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
	w = &world{Options: options, cluster: c, report: r, log: log, running: nothing, programs: filepath.Join(c.Dir(), "contenders")}
	if w.clients, err = workload.NewClients(c.RESTConfig(), true); err != nil {
		return nil, err
	}
	if w.metadata, err = metadata.NewForConfig(c.RESTConfig()); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{w.install, w.build, w.admit} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *world) close() error { return errors.Join(w.stop(), w.cluster.Stop()) }

func (w *world) install(ctx context.Context) (err error) {
	ctrl.SetLogger(logr.Discard()) // it would only tell that it was not called
	var options installation.Options
	if w.Profile != "" {
		options.AgentProgram = "./test/profiled"
		if w.Profile, err = filepath.Abs(w.Profile); err != nil {
			return err
		}
		// Children have the environment of this program.
		if err := errors.Join(os.MkdirAll(w.Profile, 0o755), os.Setenv("KRAKE_PROFILES", w.Profile)); err != nil {
			return err
		}
	}
	if w.ours, err = installation.InstallWith(ctx, w.cluster, options, w.log); err != nil {
		return err
	}
	return w.ours.StopAgent()
}

// build builds the contenders.
func (w *world) build(ctx context.Context) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	packages := []string{"./floor"}
	if w.has(gitops) {
		packages = append(packages, "./gitops")
	}
	for _, name := range packages {
		build := exec.CommandContext(ctx, "go", "build", "-o", w.programs+string(filepath.Separator), name)
		build.Dir = filepath.Join(strings.TrimSpace(string(root)), "test", "bench")
		if text, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, text)
		}
	}
	return nil
}

// admit makes the namespaces, and gives the contenders an account, which authenticates as
// our agent's does, and all rights.
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

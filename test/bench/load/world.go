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
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
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
	for _, step := range []func(context.Context) error{w.install, w.build, w.admit, w.makeNamespaces} {
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

// admit gives the contenders an account, which authenticates as our agent's does,
// and all rights.
func (w *world) admit(ctx context.Context) error {
	core := w.clients.Typed.CoreV1()
	if err := w.makeNamespace(ctx, contenderAccount); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: contenderAccount}}
	if _, err := core.ServiceAccounts(contenderAccount).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := w.clients.Typed.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: contenderAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: contenderAccount, Name: contenderAccount}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	long := int64((24 * time.Hour).Seconds())
	token, err := core.ServiceAccounts(contenderAccount).CreateToken(ctx, contenderAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &long}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	w.kubeconfig = filepath.Join(w.cluster.Dir(), "contender.kubeconfig")
	return w.cluster.WriteKubeconfig(w.kubeconfig, contenderAccount, token.Status.Token)
}

func (w *world) makeNamespaces(ctx context.Context) error {
	for i := range namespaces {
		if err := w.makeNamespace(ctx, namespaceOf(i)); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) makeNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := w.clients.Typed.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return err
}

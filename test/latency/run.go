package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	// namespace has all objects.
	namespace = "latency"
	// group is the group whose members have the role admin in the namespace, which the
	// webhook checks.
	group = "latency"
)

// auditPolicy is a usual one. The policy of the tests logs every body, which would slow
// down large objects.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// run starts a cluster, measures, and stops the cluster in any case. It writes the
// tables to out.
func run(ctx context.Context, options Options, out, log io.Writer) (err error) {
	c, err := cluster.Open(ctx, cluster.Options{Log: log, AuditPolicy: auditPolicy})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	ctrl.SetLogger(logr.Discard()) // it would only warn that it was not called
	w, err := prepare(ctx, c, options.Sizes, log)
	if err != nil {
		return err
	}
	defer w.trivial.Close()
	results, err := w.measure(ctx, options, log)
	if err != nil {
		return err
	}
	results.write(out, options.Markdown)
	return nil
}

// world has everything that the measurement uses.
type world struct {
	client kubernetes.Interface
	poster *poster
	// metrics are those of our webhook, trivial is the other webhook.
	metrics *metrics
	trivial io.Closer
	ours    *installation.Installation
}

// prepare installs both webhooks, and returns when the API server calls them.
func prepare(ctx context.Context, c *cluster.Cluster, sizes []int, log io.Writer) (*world, error) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	address, err := cluster.FreeAddress()
	if err != nil {
		return nil, err
	}
	ours, err := installation.InstallWith(ctx, c, installation.Options{WebhookArgs: []string{"--metrics-bind-address", address, "--dry-run-timeout=0"}}, log)
	if err != nil {
		return nil, err
	}
	if err := ours.StopAgent(); err != nil {
		return nil, fmt.Errorf("stop the agent: %w", err)
	}
	token, err := grant(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("give the users their rights: %w", err)
	}
	poster, err := newPoster(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	w := &world{client: client, poster: poster, metrics: newMetrics(address, token), ours: ours}
	if err := w.callDirectly(ctx); err != nil {
		return nil, fmt.Errorf("have the API server call the replica: %w", err)
	}
	w.trivial, err = w.serveTrivial(ctx, sizes)
	return w, err
}

// callDirectly bypasses the Service of the tests, which is a separate process here. In
// a cluster the kernel does its work, at no cost.
func (w *world) callDirectly(ctx context.Context) error {
	_, port, err := net.SplitHostPort(w.ours.Addresses()[0])
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/webhooks/0/clientConfig/service/port", "value": %s}]`, port)
	_, err = w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().
		Patch(ctx, configuration, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	// From here on, a request that is not sent directly fails.
	if err := w.ours.RefuseWebhook(); err != nil {
		return err
	}
	return poll(ctx, func() error {
		_, err := w.poster.post(ctx, newRequest(cached, smallest, "direct"), dryRun)
		return err
	})
}

// grant creates the namespace, binds the group there, and returns a token that may read
// the metrics.
func grant(ctx context.Context, c *cluster.Cluster) (string, error) {
	if text, err := kit.TryKubectl(ctx, c, objects, "apply", "-f", "-"); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	token, err := kit.TryKubectl(ctx, c, "", "create", "token", "metrics", "--namespace", namespace)
	return strings.TrimSpace(token), err
}

const objects = `apiVersion: v1
kind: Namespace
metadata: {name: latency}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: latency, name: latency}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: latency}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: latency, name: metrics}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: latency-metrics}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: krake-metrics-reader}
subjects: [{kind: ServiceAccount, namespace: latency, name: metrics}]
`

// newPoster makes a poster with which the administrator impersonates the users.
func newPoster(config *rest.Config) (*poster, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &poster{client: client, url: config.Host + "/api/v1/namespaces/" + namespace + "/configmaps"}, nil
}

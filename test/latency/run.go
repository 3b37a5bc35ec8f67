package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

const (
	// namespace is where everything happens.
	namespace = "latency"
	// group is whose members have the role admin in it, which is what the webhook
	// asks for.
	group = "latency"
)

// auditPolicy is what clusters usually have. The one of the tests writes every
// body, which would add to whatever is large.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// run starts a cluster, measures, and stops the cluster whatever happens. The
// tables go to out.
func run(ctx context.Context, options Options, out, log io.Writer) (err error) {
	c, err := cluster.Open(ctx, cluster.Options{Log: log, AuditPolicy: auditPolicy})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	ctrl.SetLogger(logr.Discard()) // it would only tell that it was not called
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

// world is what is measured, and with what.
type world struct {
	client kubernetes.Interface
	poster *poster
	// metrics are those of our webhook, trivial is the other one.
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
	ours, err := installation.InstallWith(ctx, c, installation.Options{WebhookArgs: []string{"--metrics-bind-address", address}}, log)
	if err != nil {
		return nil, err
	}
	if err := ours.StopAgent(); err != nil {
		return nil, fmt.Errorf("stop the agent: %w", err)
	}
	if err := grant(ctx, client); err != nil {
		return nil, fmt.Errorf("give the users their rights: %w", err)
	}
	poster, err := newPoster(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	token, err := metricsToken(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("get a token to read the metrics: %w", err)
	}
	w := &world{client: client, poster: poster, metrics: newMetrics(address, token), ours: ours}
	if err := w.callDirectly(ctx); err != nil {
		return nil, fmt.Errorf("have the API server call the replica: %w", err)
	}
	w.trivial, err = w.serveTrivial(ctx, sizes)
	return w, err
}

// callDirectly takes the Service of the tests, which is a process of its own
// kind, out of the way: in a cluster it is the kernel, and costs nothing.
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
	// From here on a request that is not sent directly fails.
	if err := w.ours.RefuseWebhook(); err != nil {
		return err
	}
	return poll(ctx, func() error {
		_, err := w.poster.post(ctx, newRequest(cached, smallest, "direct"), dryRun)
		return err
	})
}

// grant makes the namespace, and binds the group there.
func grant(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}, metav1.CreateOptions{})
	return err
}

// newPoster has the administrator impersonate the users.
func newPoster(config *rest.Config) (*poster, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return &poster{client: client, url: config.Host + "/api/v1/namespaces/" + namespace + "/configmaps"}, nil
}

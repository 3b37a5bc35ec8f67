package enrol

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Enrol makes a cluster a target of the hub, and writes the files of its agent to a folder. For a
// cluster that is enrolled already it applies the options and makes a new token. To out it
// prints what it does, and the remaining work.
func Enrol(ctx context.Context, options Options, out io.Writer) error {
	h, err := open(options.Hub, func(format string, arguments ...any) { fmt.Fprintf(out, format, arguments...) })
	if err != nil {
		return err
	}
	address, err := addressOf(h.config, options.HubServer)
	if err != nil {
		return err
	}
	folder, err := openFolder(options.Out, options.Cluster)
	if err != nil {
		return err
	}
	if address.uid, err = h.uid(ctx); err != nil {
		return err
	}
	if err := h.enrol(ctx, options); err != nil {
		return err
	}
	token, err := h.token(ctx, options.Cluster, options.TokenDuration)
	if err != nil {
		return err
	}
	if err := folder.write(options, address, token.Token); err != nil {
		return err
	}
	h.tellRest(options, address, token.ExpirationTimestamp.Time)
	return nil
}

// enrol makes identity and rights on the hub, and removes the rights of an earlier
// enrolment that are no longer wanted.
func (h *hub) enrol(ctx context.Context, options Options) error {
	if err := h.checkInstalled(ctx); err != nil {
		return err
	}
	if err := h.checkFree(ctx, options.Cluster); err != nil {
		return err
	}
	if err := h.checkOnlyName(ctx, options.Cluster); err != nil {
		return err
	}
	objects, err := read("identity.yaml", options.Cluster, "")
	if err != nil {
		return err
	}
	namespaces, named := options.namespaces()
	for _, namespace := range namespaces {
		rights, err := h.inNamespace(ctx, options, namespace, named)
		if err != nil {
			return err
		}
		objects = append(objects, rights...)
	}
	if err := h.apply(ctx, objects); err != nil {
		return err
	}
	_, err = h.prune(ctx, options.Cluster, objects)
	return err
}

// checkInstalled refuses a hub whose policies would not keep agents apart.
func (h *hub) checkInstalled(ctx context.Context) error {
	const way = "apply manifests/overlays/hub, or manifests/base, to the hub first: %w"
	if _, err := h.core.Namespaces().Get(ctx, application.AgentsNamespace, metav1.GetOptions{}); err != nil {
		return fmt.Errorf(way, err)
	}
	for _, policy := range []string{"krake-configmaps", "krake-configmaps-deletion", "krake-agents-leases"} {
		if _, err := h.policies.ValidatingAdmissionPolicyBindings().Get(ctx, policy, metav1.GetOptions{}); err != nil {
			return fmt.Errorf(way, err)
		}
	}
	return nil
}

// uid returns the UID of the hub's namespace kube-system.
func (h *hub) uid(ctx context.Context) (types.UID, error) {
	namespace, err := h.core.Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read namespace %s of the hub: %w", metav1.NamespaceSystem, err)
	}
	return namespace.UID, nil
}

// checkFree refuses the name of an agent on the hub: both would have one identity.
func (h *hub) checkFree(ctx context.Context, cluster string) error {
	account, err := h.core.ServiceAccounts(application.AgentsNamespace).Get(ctx, cluster, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("look for the ServiceAccount: %w", err)
	case account.Labels[application.EnrolmentLabel] != cluster:
		return fmt.Errorf("the ServiceAccount %s/%s of the hub is not of an enrolment: an agent on the hub has that name: choose another one", application.AgentsNamespace, cluster)
	}
	return nil
}

// checkOnlyName refuses a second name for a target, as soon as agents have connected with
// both. The agent would take the target's objects for those of a former cluster.
func (h *hub) checkOnlyName(ctx context.Context, cluster string) error {
	leases, err := h.leases.Leases(application.AgentsNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the Leases of the clusters: %w", err)
	}
	targets := map[string]string{}
	for _, lease := range leases.Items {
		if name, ok := strings.CutPrefix(lease.Name, application.HubLease("")); ok {
			targets[name] = lease.Annotations[application.TargetAnnotation]
		}
	}
	for name, target := range targets {
		if name != cluster && target != "" && target == targets[cluster] {
			return fmt.Errorf("cluster %s is the same target as cluster %s, as krake.dev/target of their Leases says: remove one of them", cluster, name)
		}
	}
	return nil
}

// inNamespace returns the objects of an enrolment in a namespace of the hub. It includes the
// namespace of the cluster's name if that does not exist. An existing one must be named, because
// the agent reads all its ConfigMaps.
func (h *hub) inNamespace(ctx context.Context, options Options, namespace string, named bool) ([]*unstructured.Unstructured, error) {
	cluster := options.Cluster
	rights, err := rightsOf(cluster, namespace, options.Hooks)
	if err != nil {
		return nil, err
	}
	found, err := h.core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		objects, err := read("namespace.yaml", cluster, namespace)
		return slices.Concat(objects, rights), err
	case err != nil:
		return nil, fmt.Errorf("look for the namespace: %w", err)
	case found.Labels[application.EnrolmentLabel] != cluster && !named:
		return nil, fmt.Errorf("the namespace %s of the hub exists already, and the agent would read all its ConfigMaps: if you mean it, name it by --hub-namespaces", namespace)
	}
	return rights, nil
}

// token creates a token of the cluster's account. The token is bound to a Secret, and the hub
// refuses it as soon as that is gone.
func (h *hub) token(ctx context.Context, cluster string, duration time.Duration) (authenticationv1.TokenRequestStatus, error) {
	name := cluster + "-enrolment"
	secret, err := h.core.Secrets(application.AgentsNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("read what the token is bound to: %w", err)
	}
	request, err := h.core.ServiceAccounts(application.AgentsNamespace).CreateToken(ctx, cluster, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(duration.Seconds())),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: name, UID: secret.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("create a token of %s/%s: %w", application.AgentsNamespace, cluster, err)
	}
	return request.Status, nil
}

func (h *hub) tellRest(options Options, address address, expires time.Time) {
	if server, err := url.Parse(address.server); err == nil && (server.Hostname() == "localhost" || net.ParseIP(server.Hostname()).IsLoopback()) {
		h.say("\nWarning: %s is this machine. If the cluster is another one, enrol it again with --hub-server.\n", address.server)
	}
	namespaces, _ := options.namespaces()
	h.say(`
On the cluster %[1]s, now and whenever the token is renewed:

    kubectl apply -k %[2]s

The token is good until %[3]s. To renew it, enrol the cluster again.
To let a user create Applications for the cluster, on the hub (in namespace %[4]s):

    kubectl create clusterrolebinding krake-deploy-to-%[1]s-USER --clusterrole=krake-deploy-to-%[1]s --user=USER
`, options.Cluster, options.Out, expires.UTC().Format(time.RFC3339), strings.Join(namespaces, ", "))
	if options.Hooks {
		h.say(`
To let Applications with objects in a namespace of the cluster have hooks, on the cluster:

    kubectl create rolebinding krake-hooks-%[1]s --clusterrole=krake-hooks --serviceaccount=krake-agents:%[1]s --namespace NAMESPACE
`, options.Cluster)
	}
}

package enrol

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	pageSize  = 500 // how many ConfigMaps are read at once
	mostShown = 20  // how many Applications a refusal names
)

// RemoveOptions are the options of remove.
type RemoveOptions struct {
	Hub     func() (*rest.Config, error)
	Cluster string
	// Force removes the cluster although Applications are on it.
	Force bool
}

// AddFlags adds the flags with their defaults.
func (o *RemoveOptions) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Force, "force", false, "remove the cluster although Applications are on it: their objects stay there")
}

// Validate returns what cannot be used.
func (o *RemoveOptions) Validate() error { return validateCluster(o.Cluster) }

// Remove removes a cluster from the hub, which refuses its agent's token at once.
// While Applications name the cluster, or have objects there, it refuses without
// --force. Namespaces and their contents stay.
func Remove(ctx context.Context, options RemoveOptions, out io.Writer) error {
	h, err := open(options.Hub, func(format string, arguments ...any) { fmt.Fprintf(out, format, arguments...) })
	if err != nil {
		return err
	}
	applications, err := h.applications(ctx, options.Cluster)
	if err != nil {
		return err
	}
	if len(applications) > 0 && !options.Force {
		return stillUsed(options.Cluster, applications)
	}
	if err := h.remove(ctx, options.Cluster); err != nil {
		return err
	}
	for _, name := range applications {
		h.say("Warning: configmap/%s is still on cluster %s, and no agent looks after it there\n", name, options.Cluster)
	}
	return nil
}

func stillUsed(cluster string, applications []string) error {
	shown := applications[:min(len(applications), mostShown)]
	more := ""
	if hidden := len(applications) - len(shown); hidden > 0 {
		more = fmt.Sprintf("\n  and %d more", hidden)
	}
	return fmt.Errorf("%d Applications name cluster %s or have objects there:\n  %s%s\n"+
		"Delete them or move them to another cluster, and wait until the agent has released them. If the cluster is lost, annotate them with "+
		"krake.dev/force-delete=%s, or remove it by --force", len(applications), cluster, strings.Join(shown, "\n  "), more, cluster)
}

// applications returns those that name the cluster or have objects there. It does not read
// their contents. Applications that were never admitted have no label.
func (h *hub) applications(ctx context.Context, cluster string) ([]string, error) {
	var found []string
	page := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := h.metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).List(ctx, page)
		if err != nil {
			return nil, fmt.Errorf("list the Applications: %w", err)
		}
		for _, item := range list.Items {
			if isOn(&corev1.ConfigMap{ObjectMeta: item.ObjectMeta}, cluster) {
				found = append(found, item.Namespace+"/"+item.Name)
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			return found, nil
		}
	}
}

func isOn(cm *corev1.ConfigMap, cluster string) bool {
	return application.IsApplication(cm) &&
		(application.ClusterOf(cm) == cluster || slices.Contains(application.HoldersOf(cm), cluster))
}

// remove deletes what was made for the cluster. The Secret that the token is bound to comes
// first, and the Lease last, because it keeps other targets from using the name.
func (h *hub) remove(ctx context.Context, cluster string) error {
	deleted, err := h.prune(ctx, cluster, nil)
	if err != nil {
		return err
	}
	lease := application.HubLease(cluster)
	err = h.leases.Leases(application.AgentsNamespace).Delete(ctx, lease, metav1.DeleteOptions{})
	switch {
	case apierrors.IsNotFound(err) && deleted == 0:
		return fmt.Errorf("cluster %q is not enrolled: kubectl get serviceaccounts --namespace %s lists those that are", cluster, application.AgentsNamespace)
	case apierrors.IsNotFound(err):
		return nil // no agent has ever connected
	case err != nil:
		return fmt.Errorf("delete Lease %s: %w", lease, err)
	}
	h.say("lease.coordination.k8s.io/%s in namespace %s deleted\n", lease, application.AgentsNamespace)
	return nil
}

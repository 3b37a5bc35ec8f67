package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Existing is the cluster of the kubeconfig file, whose user must have all rights. Stop
// ends only the processes of Run.
func Existing(ctx context.Context, kubeconfig string) (*Cluster, error) {
	kubeconfig, err := filepath.Abs(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("find kubeconfig: %w", err)
	}
	config, err := readKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		tier: tierExisting, auditLog: os.Getenv("KRAKE_E2E_AUDIT_LOG"), image: os.Getenv("KRAKE_E2E_IMAGE"), kubectl: existingKubectl(ctx),
	}
	if err := c.setConfig(kubeconfig, config); err != nil {
		return nil, err
	}
	if c.kubelet, err = hasReadyNode(ctx, c); err != nil {
		return nil, err
	}
	c.supervisor, err = newSupervisor("", false)
	return c, err
}

// existingKubectl returns the user's kubectl, or one that was built before. It builds
// none.
func existingKubectl(ctx context.Context) string {
	if kubectl := findKubectl(os.Getenv("KUBEBUILDER_ASSETS")); kubectl != "kubectl" {
		return kubectl
	}
	recipe, err := findRecipe(ctx)
	if err != nil {
		return "kubectl"
	}
	return findKubectl(recipe.folder)
}

func hasReadyNode(ctx context.Context, c *Cluster) (bool, error) {
	client, err := kubernetes.NewForConfig(c.rest)
	if err != nil {
		return false, fmt.Errorf("make client of %s: %w", c.kubeconfig, err)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("list nodes of %s: %w", c.kubeconfig, err)
	}
	return slices.ContainsFunc(nodes.Items, isReady), nil
}

func isReady(node corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Package workload has the objects that the load bench drifts and the contenders guard.
// The desired value of every leaf is [Kept], so that a contender needs no memory of it.
// This keeps the minimal repairer minimal.
package workload

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// SetLabel is on every guarded object, and names its set.
	SetLabel = "load.example.org/set"
	// Kept is the desired value of each leaf.
	Kept = "kept"
	// Free is a leaf that no contender guards.
	Free = "free"
)

// NewClient makes a client that reads and writes protobuf, without a limit of requests.
func NewClient(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1                           // a contender must not wait for its own client
	config.WarningHandler = rest.NoWarnings{} // of dry runs that a webhook under load leaves out
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	return kubernetes.NewForConfig(config)
}

// Kind is a kind of guarded objects.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
	// Leaves is the number of observed leaves that drift. With the others, an object of
	// the built-in kinds has twenty.
	Leaves int

	// Values returns the leaves of a live object, and other values.
	Values func(object runtime.Object) map[string]string
	// Watch watches objects of this kind, and Write sends one a merge patch.
	Watch func(ctx context.Context, c kubernetes.Interface, namespace string, options metav1.ListOptions) (watch.Interface, error)
	Write func(ctx context.Context, c kubernetes.Interface, namespace, name string, patch []byte, options metav1.PatchOptions) (runtime.Object, error)

	manifest func(leaves map[string]any) map[string]any
	patch    func(values map[string]string) any
}

// Kinds returns the names of all kinds.
func Kinds() []string { return []string{"configmap", "deployment"} }

// KindOf returns the kind of that name.
func KindOf(name string) Kind {
	if name == "deployment" {
		return Deployments()
	}
	return ConfigMaps()
}

// ConfigMaps have their leaves in data.
func ConfigMaps() Kind {
	return Kind{
		Name: "configmap", Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Leaves: 19,
		manifest: func(leaves map[string]any) map[string]any {
			return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": leaves}
		},
		Values: func(object runtime.Object) map[string]string {
			if cm, ok := object.(*corev1.ConfigMap); ok {
				return cm.Data
			}
			return nil
		},
		patch: func(values map[string]string) any { return map[string]any{"data": values} },
		Watch: func(ctx context.Context, c kubernetes.Interface, namespace string, options metav1.ListOptions) (watch.Interface, error) {
			return c.CoreV1().ConfigMaps(namespace).Watch(ctx, options)
		},
		Write: func(ctx context.Context, c kubernetes.Interface, namespace, name string, patch []byte, options metav1.PatchOptions) (runtime.Object, error) {
			return c.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
		},
	}
}

// Deployments have no Pods, and their leaves in the annotations of the Pod template.
func Deployments() Kind {
	inTemplate := func(leaves any) any {
		return map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": leaves}}}}
	}
	return Kind{
		Name: "deployment", Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Leaves: 14,
		manifest: func(leaves map[string]any) map[string]any {
			return deploymentOf(leaves, 0, "registry.example.org/main:1.0.0")
		},
		Values: func(object runtime.Object) map[string]string {
			if deployment, ok := object.(*appsv1.Deployment); ok {
				return deployment.Spec.Template.Annotations
			}
			return nil
		},
		patch: func(values map[string]string) any { return inTemplate(values) },
		Watch: func(ctx context.Context, c kubernetes.Interface, namespace string, options metav1.ListOptions) (watch.Interface, error) {
			return c.AppsV1().Deployments(namespace).Watch(ctx, options)
		},
		Write: func(ctx context.Context, c kubernetes.Interface, namespace, name string, patch []byte, options metav1.PatchOptions) (runtime.Object, error) {
			return c.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
		},
	}
}

// Rolling has Deployments of three Pods whose image has this version.
func Rolling(version int) Kind {
	kind := Deployments()
	kind.manifest = func(leaves map[string]any) map[string]any {
		return deploymentOf(leaves, 3, fmt.Sprintf("registry.example.org/main:1.0.%d", version))
	}
	return kind
}

func deploymentOf(leaves map[string]any, replicas int, image string) map[string]any {
	labels := map[string]any{"app": "guarded"}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{
			"replicas": int64(replicas), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels, "annotations": leaves},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
			},
		},
	}
}

// Leaf returns the name of a leaf.
func Leaf(i int) string { return fmt.Sprintf("leaf-%02d", i) }

// Manifest returns a user's manifest of an object of the set.
func (k Kind) Manifest(set, name string) map[string]any {
	leaves := map[string]any{}
	for i := range k.Leaves {
		leaves[Leaf(i)] = Kept
	}
	manifest := k.manifest(leaves)
	manifest["metadata"] = map[string]any{"name": name, "labels": map[string]any{SetLabel: set}}
	return manifest
}

// Deployment returns a Deployment of a set.
func Deployment(set, name string) (*appsv1.Deployment, error) {
	deployment := new(appsv1.Deployment)
	return deployment, runtime.DefaultUnstructuredConverter.FromUnstructured(Deployments().Manifest(set, name), deployment)
}

// Drifted returns the leaves with a wrong value, sorted.
func (k Kind) Drifted(object runtime.Object) []string {
	values := k.Values(object)
	var found []string
	for i := range k.Leaves {
		if leaf := Leaf(i); values[leaf] != Kept {
			found = append(found, leaf)
		}
	}
	return found
}

// Patch returns a merge patch that sets leaves.
func (k Kind) Patch(values map[string]string) ([]byte, error) { return json.Marshal(k.patch(values)) }

// Repair returns the merge patch that restores leaves.
func (k Kind) Repair(leaves []string) ([]byte, error) {
	values := map[string]string{}
	for _, leaf := range leaves {
		values[leaf] = Kept
	}
	return k.Patch(values)
}

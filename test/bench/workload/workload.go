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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
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

// Clients are two clients of an API server: Typed with the chosen encoding, Dynamic
// with JSON.
type Clients struct {
	Typed   kubernetes.Interface
	Dynamic dynamic.Interface
}

// NewClients makes both. It ignores the encodings of the configuration.
func NewClients(config *rest.Config, protobuf bool) (Clients, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1                           // a contender must not wait for its own client
	config.WarningHandler = rest.NoWarnings{} // of dry runs that a webhook under load leaves out
	config.ContentType = runtime.ContentTypeJSON
	json, err := dynamic.NewForConfig(config)
	if err != nil {
		return Clients{}, err
	}
	if protobuf {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf
	}
	typed, err := kubernetes.NewForConfig(config)
	return Clients{Typed: typed, Dynamic: json}, err
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
	// Watch watches objects of this kind, Get reads one, and Write sends it a merge patch.
	Watch func(ctx context.Context, c Clients, namespace string, options metav1.ListOptions) (watch.Interface, error)
	Get   func(ctx context.Context, c Clients, namespace, name string) (runtime.Object, error)
	Write func(ctx context.Context, c Clients, namespace, name string, patch []byte, options metav1.PatchOptions) (runtime.Object, error)

	manifest func(leaves map[string]any) map[string]any
	patch    func(values map[string]string) any
}

// Kinds returns all kinds, by name.
func Kinds() map[string]Kind {
	kinds := map[string]Kind{}
	for _, k := range []Kind{ConfigMaps(), Deployments(), Custom()} {
		kinds[k.Name] = k
	}
	return kinds
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
		Watch: func(ctx context.Context, c Clients, namespace string, options metav1.ListOptions) (watch.Interface, error) {
			return c.Typed.CoreV1().ConfigMaps(namespace).Watch(ctx, options)
		},
		Get: func(ctx context.Context, c Clients, namespace, name string) (runtime.Object, error) {
			return c.Typed.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Write: func(ctx context.Context, c Clients, namespace, name string, patch []byte, options metav1.PatchOptions) (runtime.Object, error) {
			return c.Typed.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
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
		Watch: func(ctx context.Context, c Clients, namespace string, options metav1.ListOptions) (watch.Interface, error) {
			return c.Typed.AppsV1().Deployments(namespace).Watch(ctx, options)
		},
		Get: func(ctx context.Context, c Clients, namespace, name string) (runtime.Object, error) {
			return c.Typed.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Write: func(ctx context.Context, c Clients, namespace, name string, patch []byte, options metav1.PatchOptions) (runtime.Object, error) {
			return c.Typed.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
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
			"replicas": replicas, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels, "annotations": leaves},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
			},
		},
	}
}

// Custom has resources of [Definition] with about 2,000 lines, most of which no contender
// guards.
func Custom() Kind {
	resource := schema.GroupVersionResource{Group: "load.example.org", Version: "v1", Resource: "deeps"}
	in := func(c Clients, namespace string) dynamic.ResourceInterface {
		return c.Dynamic.Resource(resource).Namespace(namespace)
	}
	return Kind{
		Name: "custom", Resource: resource, Leaves: 19,
		manifest: func(leaves map[string]any) map[string]any {
			return map[string]any{
				"apiVersion": resource.GroupVersion().String(), "kind": "Deep",
				"spec": map[string]any{"leaves": leaves, "sections": sections()},
			}
		},
		Values: func(object runtime.Object) map[string]string {
			if custom, ok := object.(*unstructured.Unstructured); ok {
				values, _, _ := unstructured.NestedStringMap(custom.Object, "spec", "leaves")
				return values
			}
			return nil
		},
		patch: func(values map[string]string) any {
			return map[string]any{"spec": map[string]any{"leaves": values}}
		},
		Watch: func(ctx context.Context, c Clients, namespace string, options metav1.ListOptions) (watch.Interface, error) {
			return in(c, namespace).Watch(ctx, options)
		},
		Get: func(ctx context.Context, c Clients, namespace, name string) (runtime.Object, error) {
			return in(c, namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Write: func(ctx context.Context, c Clients, namespace, name string, patch []byte, options metav1.PatchOptions) (runtime.Object, error) {
			return in(c, namespace).Patch(ctx, name, types.MergePatchType, patch, options)
		},
	}
}

// Definition returns the definition of the custom resources.
func Definition() *unstructured.Unstructured {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "deeps.load.example.org"},
		"spec": map[string]any{
			"group": "load.example.org", "scope": "Namespaced",
			"names": map[string]any{"kind": "Deep", "listKind": "DeepList", "plural": "deeps", "singular": "deep"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": anything},
				}},
			}},
		},
	}}
}

// sections are nested as deeply as those of real definitions: each of the hundred has
// twenty lines as YAML.
func sections() map[string]any {
	all := map[string]any{}
	for s := range 100 {
		fields := map[string]any{}
		for f := range 4 {
			fields[fmt.Sprintf("field-%d", f)] = map[string]any{
				"type": "string", "description": fmt.Sprintf("What field %d of section %d is for, as people write it.", f, s),
				"default": "none", "maxLength": int64(63),
			}
		}
		all[fmt.Sprintf("section-%02d", s)] = map[string]any{"properties": fields}
	}
	return all
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

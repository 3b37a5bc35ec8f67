package habitat

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/internal/options"
	"github.com/krake-observer/krake-observer/pkg/habitat"
)

var kind = schema.GroupVersionKind{Group: habitat.Group, Version: habitat.Version, Kind: habitat.Kind}

// newHabitat returns an empty Habitat to read into. It is unstructured: a single
// Habitat that does not fit into Go types would make the list of all unreadable.
func newHabitat() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

func newHabitatList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

func isKnown(version string) bool { return version == habitat.V1beta1 || version == habitat.V1beta2 }

// cacheOptions limits the caches to the objects of Habitats, and to the required fields.
func cacheOptions(namespaces []string) cache.Options {
	ours := labels.SelectorFromSet(labels.Set{habitat.Label: "true"})
	return cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}:   {Label: ours},
			&appsv1.StatefulSet{}: {Label: ours},
			&corev1.Pod{}:         {Label: ours, Transform: trimPod},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
		// A read of another kind fails, and does not start a watch.
		ReaderFailOnMissingInformer: true,
		DefaultNamespaces:           options.CacheNamespaces(namespaces),
	}
}

// trimPod keeps the fields that show whether a Pod can be the peer, and whether its
// revision is outdated.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp, Labels: pod.Labels, OwnerReferences: pod.OwnerReferences,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP, StartTime: pod.Status.StartTime},
	}, nil
}

// newSecret returns a Secret for requests that read only its metadata.
func newSecret() *metav1.PartialObjectMetadata {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return secret
}

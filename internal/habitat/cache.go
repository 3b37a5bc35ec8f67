package habitat

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/habitat"
)

var kind = schema.GroupVersionKind{Group: habitat.Group, Version: habitat.Version, Kind: habitat.Kind}

// newHabitat is a Habitat to be read. It is read as it is: one that does not fit
// into the types of a program would keep it from seeing any other.
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

// newSecret is a Secret of which the API server tells its metadata only.
func newSecret() *metav1.PartialObjectMetadata {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return secret
}

// cacheOptions has the caches hold what concerns Habitats, and as little of it as is needed.
func cacheOptions(namespaces []string) cache.Options {
	ours := labels.SelectorFromSet(labels.Set{habitat.Label: "true"})
	options := cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}:   {Label: ours},
			&appsv1.StatefulSet{}: {Label: ours},
			&corev1.Pod{}:         {Label: ours, Transform: trimPod},
			newSecret():           {Transform: trimSecret},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
		// Nothing is watched and kept because somebody happened to read it.
		ReaderFailOnMissingInformer: true,
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

// trimPod keeps of a Pod what tells whether it can be a peer, and whether it is of an
// older revision.
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

// trimSecret keeps the name: the annotation of kubectl apply holds all values.
func trimSecret(object any) (any, error) {
	secret, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta: secret.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
		},
	}, nil
}

// secretsIndex finds the Habitats that want a Secret.
const secretsIndex = "secrets"

func (s *shared) index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, newHabitat(), secretsIndex, func(object client.Object) []string {
		live, ok := object.(*unstructured.Unstructured)
		if !ok || !isKnown(habitat.CustomVersionOf(live.Object)) {
			return nil
		}
		parsed, refusals := habitat.Parse(live.Object)
		if len(refusals) > 0 {
			return nil
		}
		var names []string
		for _, secret := range parsed.Secrets() {
			names = append(names, secret.Name)
		}
		return names
	})
}

func isKnown(version string) bool { return version == habitat.V1beta1 || version == habitat.V1beta2 }

package habitat

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// statefulSetOf reads the StatefulSet of a Habitat. It returns nil if there is none that
// has the marks of the Application.
func statefulSetOf(ctx context.Context, from client.Reader, h habitat.Habitat, cm *corev1.ConfigMap) (*appsv1.StatefulSet, error) {
	var set appsv1.StatefulSet
	if err := from.Get(ctx, h.NamespacedName, &set); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !hasMarks(set.Annotations, cm, manifest.ID{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: h.Namespace, Name: h.Name}) {
		return nil, nil
	}
	return &set, nil
}

// differences compares a StatefulSet with the Habitat. The types of the API give both
// the same form, so that another notation of the same value is no difference.
func differences(h habitat.Habitat, filesImage string, set *appsv1.StatefulSet) (schema.Differences, error) {
	wanted := h.Workload(filesImage)
	fields, err := schema.Default(wanted)
	if err != nil {
		return nil, err
	}
	var typed appsv1.StatefulSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(wanted, &typed); err != nil {
		return nil, err
	}
	desired, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	if err != nil {
		return nil, err
	}
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return nil, err
	}
	live["apiVersion"], live["kind"] = wanted["apiVersion"], wanted["kind"] // caches leave them out
	return fields.Compare(desired, live), nil
}

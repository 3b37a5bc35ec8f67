package apitypes

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Exclude reports whether Kubernetes accepts at most one of two fields of the same object, in its own types and in
// those that contain them. Its API does not say so: only the validation of an API server does.
func Exclude(a, b string) bool {
	return a != b && slices.ContainsFunc(unions(), func(members []string) bool {
		return slices.Contains(members, a) && slices.Contains(members, b)
	})
}

// unions are fields of which an object has one.
var unions = sync.OnceValue(func() [][]string {
	return [][]string{
		fieldsOf[corev1.VolumeSource](),
		fieldsOf[corev1.PersistentVolumeSource](),
		fieldsOf[corev1.VolumeProjection](),
		fieldsOf[corev1.ProbeHandler](),
		fieldsOf[corev1.LifecycleHandler](),
		{"value", "valueFrom"},
		fieldsOf[corev1.EnvVarSource](),
		{"minAvailable", "maxUnavailable"},
		{"resource", "containerResource", "pods", "object", "external"}, // metrics
		{"value", "averageValue", "averageUtilization"},                 // their targets
		{"ipBlock", "podSelector"},                                      // peers
		{"ipBlock", "namespaceSelector"},
		{"service", "resource"}, // backends of an Ingress
	}
})

// fieldsOf returns the names of the fields of a Go type in JSON.
func fieldsOf[T any]() []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

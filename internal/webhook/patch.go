package webhook

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

var errUnpatchable = errors.New("the ConfigMap was changed beyond its labels, finalizers and data, which no patch says: this is a bug of the webhook")

// difference answers with the JSON patch between two ConfigMaps, with one operation
// for each key that was changed. It knows what the webhook writes: labels,
// finalizers and data. To have both encoded, decoded and compared as any two texts
// are takes as long as a tenth of all that the webhook computes.
func difference(before, after *corev1.ConfigMap) admission.Response {
	if !equality.Semantic.DeepEqual(withoutOurs(before), withoutOurs(after)) {
		return admission.Errored(http.StatusInternalServerError, errUnpatchable)
	}
	operations := slices.Concat(
		changes("/metadata/labels", before.Labels, after.Labels, func(a, b string) bool { return a == b }),
		changes("/data", before.Data, after.Data, func(a, b string) bool { return a == b }),
		changes("/binaryData", before.BinaryData, after.BinaryData, slices.Equal))
	if !slices.Equal(before.Finalizers, after.Finalizers) {
		// The empty list is left out when the object is stored, and this replaces those that are there.
		operations = append(operations, jsonpatch.NewOperation("add", "/metadata/finalizers", slices.Concat([]string{}, after.Finalizers)))
	}
	return admission.Patched("", operations...)
}

func withoutOurs(cm *corev1.ConfigMap) *corev1.ConfigMap {
	others := *cm
	others.Labels, others.Finalizers, others.Data, others.BinaryData = nil, nil, nil, nil
	return &others
}

// changes gives the operations that make one map of another. One that is missing
// before is added as a whole: a path below it would be answered by a 500.
func changes[V any](path string, before, after map[string]V, equal func(a, b V) bool) (operations []jsonpatch.Operation) {
	switch {
	case len(before) == 0 && len(after) == 0:
		return nil
	case len(before) == 0:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", path, after)}
	case len(after) == 0:
		return []jsonpatch.Operation{jsonpatch.NewOperation("remove", path, nil)}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[key]; !stays {
			operations = append(operations, jsonpatch.NewOperation("remove", path+pointer(key), nil))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		switch was, had := before[key]; {
		case !had:
			operations = append(operations, jsonpatch.NewOperation("add", path+pointer(key), after[key]))
		case !equal(was, after[key]):
			operations = append(operations, jsonpatch.NewOperation("replace", path+pointer(key), after[key]))
		}
	}
	return operations
}

func pointer(key string) string { return schema.Path{{Field: key, Index: -1}}.Pointer() }

package webhook

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

var errUnpatchable = errors.New("the ConfigMap was changed beyond its labels, its holder, signature, finalizers and data, which no patch says: this is a bug of the webhook")

// difference answers with the JSON patch between two ConfigMaps. It compares the labels,
// finalizers, data, the holder and the signature that the webhook writes, with one operation for each key that
// differs. Comparing the encoded ConfigMaps would take a tenth of the webhook's time.
func difference(before, after *corev1.ConfigMap) admission.Response {
	if !equality.Semantic.DeepEqual(withoutOurs(before), withoutOurs(after)) {
		return admission.Errored(http.StatusInternalServerError, errUnpatchable)
	}
	operations := slices.Concat(
		changes("/metadata/labels", before.Labels, after.Labels),
		changes("/metadata/annotations", before.Annotations, after.Annotations),
		changes("/data", before.Data, after.Data),
		changes("/binaryData", before.BinaryData, after.BinaryData))
	if !slices.Equal(before.Finalizers, after.Finalizers) {
		// The API server leaves out an empty list, and this replaces the stored one.
		operations = append(operations, jsonpatch.NewOperation("add", "/metadata/finalizers", slices.Concat([]string{}, after.Finalizers)))
	}
	return admission.Patched("", operations...)
}

func withoutOurs(cm *corev1.ConfigMap) *corev1.ConfigMap {
	others := *cm
	others.Labels, others.Finalizers, others.Data, others.BinaryData = nil, nil, nil, nil
	others.Annotations = maps.Clone(cm.Annotations)
	delete(others.Annotations, application.HeldByAnnotation)
	delete(others.Annotations, application.SignatureAnnotation)
	return &others
}

// changes returns the operations that make one map of another. A map that is missing before
// is added as a whole: the API server answers a path below it with a 500.
func changes[V string | []byte](path string, before, after map[string]V) (operations []jsonpatch.Operation) {
	switch {
	case len(before) == 0 && len(after) == 0:
		return nil
	case len(before) == 0:
		return []jsonpatch.Operation{jsonpatch.NewOperation("add", path, after)}
	case len(after) == 0:
		return []jsonpatch.Operation{jsonpatch.NewOperation("remove", path, nil)}
	}
	for _, key := range sets.List(sets.KeySet(before).Union(sets.KeySet(after))) {
		at := path + schema.Path{{Field: key, Index: -1}}.Pointer()
		was, had := before[key]
		switch is, stays := after[key]; {
		case !stays:
			operations = append(operations, jsonpatch.NewOperation("remove", at, nil))
		case !had:
			operations = append(operations, jsonpatch.NewOperation("add", at, is))
		case string(was) != string(is):
			operations = append(operations, jsonpatch.NewOperation("replace", at, is))
		}
	}
	return operations
}

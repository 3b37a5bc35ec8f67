package hub

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mergePatch returns the merge patch from one ConfigMap to another, guarded by the version;
// nil if they are equal. It covers the keys of an Application only. Most of a ConfigMap is
// text that stays, and comparing two encoded ConfigMaps would take longer than the rest.
func mergePatch(stored, updated *corev1.ConfigMap) map[string]any {
	metadata, patch := map[string]any{}, map[string]any{}
	add(metadata, "labels", changed(stored.Labels, updated.Labels, func(a, b string) bool { return a == b }))
	if !slices.Equal(stored.Finalizers, updated.Finalizers) {
		metadata["finalizers"] = slices.Clone(updated.Finalizers)
	}
	add(patch, "data", changed(stored.Data, updated.Data, func(a, b string) bool { return a == b }))
	add(patch, "binaryData", changed(stored.BinaryData, updated.BinaryData, bytes.Equal))
	if len(metadata) == 0 && len(patch) == 0 {
		return nil
	}
	metadata["resourceVersion"] = stored.ResourceVersion
	patch["metadata"] = metadata
	return patch
}

func add(patch map[string]any, field string, changes map[string]any) {
	if len(changes) > 0 {
		patch[field] = changes
	}
}

// changed returns the entries that differ, nil for those that are gone.
func changed[V any](stored, updated map[string]V, equal func(a, b V) bool) map[string]any {
	changes := map[string]any{}
	for key, value := range updated {
		if former, ok := stored[key]; !ok || !equal(former, value) {
			changes[key] = value
		}
	}
	for key := range stored {
		if _, ok := updated[key]; !ok {
			changes[key] = nil
		}
	}
	return changes
}

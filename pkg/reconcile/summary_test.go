package reconcile_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// It is enough to decode the fields that Summarised names, the type, and metadata without
// managedFields. The summary is the same as that of the whole object.
func TestSummarised(t *testing.T) {
	condition := func(name, status string) map[string]any {
		return map[string]any{"type": name, "status": status, "reason": "Because", "message": "so"}
	}
	statuses := []map[string]any{
		nil,
		{"replicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1), "updatedReplicas": int64(1), "observedGeneration": int64(1)},
		{"phase": "Bound", "conditions": []any{condition("Ready", "True")}},
		{"phase": "Running", "conditions": []any{condition("Ready", "False")}, "containerStatuses": []any{map[string]any{"ready": false}}},
		{"conditions": []any{condition("Established", "True"), condition("NamesAccepted", "True")}},
		{"succeeded": int64(1), "conditions": []any{condition("Complete", "True")}, "startTime": "2026-01-01T00:00:00Z"},
		{"conditions": []any{condition("Stalled", "True"), condition("Reconciling", "True")}},
		{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}}},
	}
	types := []map[string]any{
		{"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "apps/v1", "kind": "StatefulSet"},
		{"apiVersion": "apps/v1", "kind": "DaemonSet"}, {"apiVersion": "apps/v1", "kind": "ReplicaSet"},
		{"apiVersion": "batch/v1", "kind": "Job"}, {"apiVersion": "batch/v1", "kind": "CronJob"},
		{"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "v1", "kind": "Service"}, {"apiVersion": "v1", "kind": "ConfigMap"},
		{"apiVersion": "v1", "kind": "Secret"}, {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}, {"apiVersion": "v1", "kind": "Endpoints"},
		{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}, {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"},
		{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}, {"apiVersion": "a.example/v1", "kind": "Thing"},
	}
	seen := map[any]bool{}
	for _, of := range types {
		for _, status := range statuses {
			whole := map[string]any{
				"metadata": map[string]any{
					"name": "a", "namespace": "b", "generation": int64(1), "managedFields": []any{map[string]any{"manager": "m"}},
					"annotations": map[string]any{"krake.dev/owner-uid": "u", "krake.dev/hold-until": "2026-01-01T00:00:00Z"},
				},
				"spec": map[string]any{"replicas": int64(1), "type": "LoadBalancer", "completions": int64(1)},
				// Other top-level fields of kinds.
				"data": map[string]any{"a": "b"}, "stringData": map[string]any{"a": "b"}, "type": "Opaque", "immutable": true, "subsets": []any{},
				"rules": []any{}, "roleRef": map[string]any{}, "webhooks": []any{}, "conditions": []any{condition("Ready", "False")}, "phase": "Failed",
				"provisioner": "p", "value": int64(1), "secrets": []any{}, "ports": []any{}, "endpoints": []any{},
			}
			maps.Copy(whole, of)
			if status != nil {
				whole["status"] = status
			}
			part := map[string]any{}
			for field, value := range whole {
				if slices.Contains(append(reconcile.Summarised(), "apiVersion", "kind"), field) {
					part[field] = value
				}
			}
			metadata := maps.Clone(whole["metadata"].(map[string]any))
			delete(metadata, "managedFields")
			part["metadata"] = metadata
			want := reconcile.Summarise(whole)
			if got := reconcile.Summarise(part); got != want {
				t.Errorf("%s with %v is summarised as %+v from a part, and as %+v from all", of["kind"], status, got, want)
			}
			seen[want] = true
		}
	}
	if len(seen) < len(statuses) {
		t.Errorf("all of these have %d summaries only: nothing is shown", len(seen))
	}
}

package mutate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// The fields that each agent may change: the agent of the present cluster, of a former one,
// and of another one. The policy krake-configmaps has the same rules, see test/policies.
func TestCheckAgentUpdate(t *testing.T) {
	tests := []struct {
		why    string
		change func(cm *corev1.ConfigMap)
		// The places that are refused to the agent of each cluster.
		present, former []any
	}{
		{"nothing", func(*corev1.ConfigMap) {}, []any{}, []any{}},
		{"the inventory of its own", func(cm *corev1.ConfigMap) { cm.Data["inventory.local"] = "[]" }, []any{}, []any{"data[inventory.local]"}},
		{"the inventory of another one", func(cm *corev1.ConfigMap) { cm.Data["inventory.edge"] = "[]" }, []any{"data[inventory.edge]"}, []any{}},
		{"the status", func(cm *corev1.ConfigMap) {
			cm.Data["status"], cm.Data["status.learned"], cm.Data["status.last_observed_manifest"] = "a", "b", "c"
			cm.Labels["krake.dev/state"] = "FAILED"
		}, []any{}, []any{"data[status]", "data[status.last_observed_manifest]", "data[status.learned]", "metadata.labels[krake.dev/state]"}},
		{"the status, compressed", func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"status": {1}} }, []any{}, []any{"binaryData[status]"}},
		{"what it learns is published", func(cm *corev1.ConfigMap) { cm.Data["status.last_applied_manifest"] = "a" }, []any{}, []any{"data[status.last_applied_manifest]"}},
		{"the spec", func(cm *corev1.ConfigMap) { cm.Data["spec.manifest"] = "a" }, []any{"data[spec.manifest]"}, []any{"data[spec.manifest]"}},
		{"a key of the spec more", func(cm *corev1.ConfigMap) { cm.Data["spec.tosca"] = "a" }, []any{"data[spec.tosca]"}, []any{"data[spec.tosca]"}},
		{"the spec less", func(cm *corev1.ConfigMap) { delete(cm.Data, "spec.manifest") }, []any{"data[spec.manifest]"}, []any{"data[spec.manifest]"}},
		{"the mangled schema, where only it can compute it", func(cm *corev1.ConfigMap) { cm.Data["status.mangled_observer_schema"] = "a" },
			[]any{}, []any{"data[status.mangled_observer_schema]"}},
		{"the translation of what it has fetched", func(cm *corev1.ConfigMap) { cm.Data["status.translated_manifest"] = "a" },
			[]any{}, []any{"data[status.translated_manifest]"}},
		{"the user's other data", func(cm *corev1.ConfigMap) { cm.Data["note"] = "a" }, []any{"data[note]"}, []any{"data[note]"}},
		{"annotations", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/cluster"] = "edge" },
			[]any{"metadata.annotations[krake.dev/cluster]"}, []any{"metadata.annotations[krake.dev/cluster]"}},
		{"labels", func(cm *corev1.ConfigMap) { cm.Labels["team"] = "red" }, []any{"metadata.labels[team]"}, []any{"metadata.labels[team]"}},
		{"its own holder label, once it holds nothing", func(cm *corev1.ConfigMap) { delete(cm.Labels, "holder.krake.dev/local") },
			[]any{}, []any{"metadata.labels[holder.krake.dev/local]"}},
		{"to hold for another cluster", func(cm *corev1.ConfigMap) { cm.Labels["holder.krake.dev/far"] = "true" },
			[]any{"metadata.labels[holder.krake.dev/far]"}, []any{"metadata.labels[holder.krake.dev/far]"}},
		{"the finalizers of others", func(cm *corev1.ConfigMap) { cm.Finalizers = nil },
			[]any{"metadata.finalizers"}, []any{"metadata.finalizers"}},
		{"the finalizer of another cluster", func(cm *corev1.ConfigMap) { cm.Finalizers = append(cm.Finalizers, "edge.krake.dev/resources") },
			[]any{"metadata.finalizers"}, []any{"metadata.finalizers"}}, // a former one adds none
		{"its own finalizer, once it holds nothing", func(cm *corev1.ConfigMap) { cm.Finalizers = cm.Finalizers[:1] },
			[]any{}, []any{"metadata.finalizers"}},
		{"immutable", func(cm *corev1.ConfigMap) { cm.Immutable = new(true) }, []any{"immutable"}, []any{"immutable"}},
		{"owners", func(cm *corev1.ConfigMap) { cm.OwnerReferences = []metav1.OwnerReference{{Name: "a"}} },
			[]any{"metadata.ownerReferences"}, []any{"metadata.ownerReferences"}},
		{"to unmake the Application", func(cm *corev1.ConfigMap) { cm.Annotations = nil },
			[]any{"metadata.annotations[krake.dev/application]"}, []any{"metadata.annotations[krake.dev/application]"}},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			was := stored(t)
			was.Labels["holder.krake.dev/edge"] = "true" // it was there once, and still has objects
			cm := was.DeepCopy()
			test.change(cm)
			check.Equal(t, "refused to the agent of the present cluster", test.present, places(mutate.CheckAgentUpdate(cm, was, "local")))
			check.Equal(t, "refused to the agent of a former cluster", test.former, places(mutate.CheckAgentUpdate(cm, was, "edge")))
			check.Equal(t, "refused to the agent of another cluster", 1, len(mutate.CheckAgentUpdate(cm, was, "other")))
		})
	}
}

func TestCheckAgentUpdateMakesNoApplication(t *testing.T) {
	was := stored(t)
	was.Annotations = nil
	check.Equal(t, "refusals", []any{"metadata.annotations[krake.dev/application]"}, places(mutate.CheckAgentUpdate(stored(t), was, "local")))
}

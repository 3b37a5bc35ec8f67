package hub

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Changes by users wake the agent, and its own writes do not.
func TestIntentChanged(t *testing.T) {
	cases := []struct {
		name   string
		change func(cm *corev1.ConfigMap)
		want   bool
	}{
		{"nothing, as a resync brings it", func(*corev1.ConfigMap) {}, false},
		{"the spec", func(cm *corev1.ConfigMap) { cm.Data[application.ManifestKey] = "{}" }, true},
		{"the schema", func(cm *corev1.ConfigMap) { cm.Data[application.ObserverSchemaKey] = "{}" }, true},
		{"an annotation, as the mode is one", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/mode"] = "observe" }, true},
		{"the wish to be deleted", func(cm *corev1.ConfigMap) { cm.DeletionTimestamp = &metav1.Time{} }, true},
		{"another object of the same name", func(cm *corev1.ConfigMap) { cm.UID = "2" }, true},
		{"status", func(cm *corev1.ConfigMap) { cm.Data[application.StatusKey] = "{}" }, false},
		{"the webhook's documents", func(cm *corev1.ConfigMap) { cm.Data[application.LastAppliedKey] = "[]" }, false},
		{"the state's label", func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{application.StateLabel: "RUNNING"} }, false},
		{"the finalizer", func(cm *corev1.ConfigMap) { cm.Finalizers = []string{application.Finalizer("local")} }, false},
		{"what is nobody's concern", func(cm *corev1.ConfigMap) { cm.Data["theirs"] = "x" }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := kit.Application("demo", "app", "[]")
			before.UID = "1"
			after := before.DeepCopy()
			c.change(after)
			update := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
			check.Equal(t, "the agent is woken", c.want, IntentChanged("local", func(*corev1.ConfigMap) {}).Update(update))
		})
	}
}

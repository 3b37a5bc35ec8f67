package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// The agent is woken by what users want, not by what it has written itself.
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
			before := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{UID: "1", Annotations: map[string]string{application.FormatAnnotation: application.Format}},
				Data:       map[string]string{application.ManifestKey: "[]"},
			}
			after := before.DeepCopy()
			c.change(after)
			if got := intentChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// What the observers say gets into the controller's queue, and many events of
// one Application are one.
func TestNotifications(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	var n notifications
	if err := n.start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	n.notify(appName)
	n.notify(appName)
	if queue.Len() != 1 {
		t.Errorf("%d in the queue, want 1", queue.Len())
	}
	if got, _ := queue.Get(); got.NamespacedName != appName {
		t.Errorf("in the queue: %v", got)
	}
}

// People are told what was done; what should not have been necessary is a warning.
func TestReport(t *testing.T) {
	app := &application.Application{NamespacedName: appName}
	object := manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "web"}
	for action, want := range map[reconcile.Action]string{
		reconcile.Created:    "Normal Created Created v1 Service demo/web",
		reconcile.Configured: "Normal Configured Configured v1 Service demo/web",
		reconcile.Deleted:    "Normal Deleted Deleted v1 Service demo/web",
		reconcile.Recreated:  "Warning Recreated Recreated v1 Service demo/web",
		reconcile.Reverted: "Warning DriftReverted DriftReverted v1 Service demo/web, " +
			"changed by unknown (the removal of a field leaves no trace)",
	} {
		recorder := events.NewFakeRecorder(1)
		newReporter(recorder, log.Log).report(app, reconcile.Outcome{Action: action, Object: object})
		if diff := cmp.Diff(want, <-recorder.Events); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
}

package cli

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

const webManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 2}
---
apiVersion: v1
kind: Service
metadata: {name: web}
`

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func idOf(kind, name string) manifest.ID {
	id := manifest.ID{APIVersion: "v1", Kind: kind, Namespace: "demo", Name: name}
	if kind == "Deployment" {
		id.APIVersion = "apps/v1"
	}
	return id
}

// created returns an Application that a user created three days ago.
func created(name string, annotations ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: ago(72 * time.Hour),
			Annotations: map[string]string{application.FormatAnnotation: application.Format},
		},
		Data: map[string]string{application.ManifestKey: webManifest},
	}
	for pair := range slices.Chunk(annotations, 2) {
		cm.Annotations[pair[0]] = pair[1]
	}
	return cm
}

func admitted(t *testing.T, cm *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	objects := []map[string]any{{"kind": "Deployment"}, {"kind": "Service"}}
	check.Must(t, application.Publish(cm, application.Documents{Mangled: objects, Applied: objects}))
	return cm
}

// recorded returns it with a status that the agent of its cluster writes after edit. Before
// edit, it is running and ready.
func recorded(t *testing.T, cm *corev1.ConfigMap, edit func(app *application.Application)) *corev1.ConfigMap {
	t.Helper()
	app, err := application.Read(cm)
	check.Must(t, err)
	app.Finalized, app.LastApplied = true, application.Publishing([]map[string]any{{"kind": "Deployment"}, {"kind": "Service"}})
	app.Inventory = []manifest.ID{idOf("Deployment", "web"), idOf("Service", "web")}
	app.Status = application.Status{
		ObservedSpec: app.Spec.Digest(), State: application.StateRunning,
		Conditions: []metav1.Condition{
			condition(application.ReconciledCondition, metav1.ConditionTrue, "Reconciled", "all objects match the Application"),
			condition(application.DriftedCondition, metav1.ConditionFalse, "NoDrift", ""),
			condition(application.ContendedCondition, metav1.ConditionFalse, "NoCompetingWriter", ""),
			condition(application.ConflictedCondition, metav1.ConditionFalse, "NoConflicts", ""),
			condition(application.StalledCondition, metav1.ConditionFalse, "Progressing", ""),
			condition(application.ReadyCondition, metav1.ConditionTrue, "Ready", "all objects match the Application, and are healthy"),
		},
		Objects: []application.ObjectStatus{
			{ID: idOf("Deployment", "web"), Health: "Current"}, {ID: idOf("Service", "web"), Health: "Current"},
		},
		Services:        map[string]string{"web": "10.0.0.1:80"},
		ContainerHealth: &application.ContainerHealth{DesiredPods: 2, RunningPods: 2},
	}
	app.Status = app.Status.On(app.Cluster)
	if edit != nil {
		edit(app)
	}
	check.Must(t, app.Record(cm))
	return cm
}

func condition(name string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(time.Hour)}
}

func set(app *application.Application, conditions ...metav1.Condition) {
	for _, c := range conditions {
		meta.SetStatusCondition(&app.Status.Conditions, c)
	}
}

// rescaled returns a drift that was reverted.
func rescaled(seen time.Duration, times int) application.Drift {
	changed := ago(seen + time.Second)
	return application.Drift{
		Object: idOf("Deployment", "web"), Fields: []application.DriftedField{{Path: "spec.replicas", Want: int64(2), Have: int64(5)}},
		Manager: "kubectl-scale", Subresource: "scale", Operation: "Update", Changed: &changed, Seen: ago(seen),
		Repaired: "DriftReverted", After: &metav1.Duration{Duration: 12 * time.Millisecond}, Count: times,
	}
}

// webApp returns an Application that runs, and has drifted.
func webApp(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	return recorded(t, admitted(t, created("web")), func(app *application.Application) {
		app.Status.Drifts = []application.Drift{
			rescaled(5*time.Minute, 3),
			{
				Object: idOf("Service", "web"), Seen: ago(2 * time.Hour), Repaired: "Recreated",
				After: &metav1.Duration{Duration: 40 * time.Millisecond}, Count: 1,
			},
		}
	})
}

// heldApp returns an Application with a held object, which has changed.
func heldApp(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	return recorded(t, admitted(t, created("held")), func(app *application.Application) {
		const path = "spec.template.spec.containers[0].image"
		message := "apps/v1 Deployment demo/web: " + path + ": held until 2026-01-02T12:45:00Z"
		set(app, condition(application.ReconciledCondition, metav1.ConditionFalse, "Held", message),
			condition(application.DriftedCondition, metav1.ConditionTrue, "Held", message),
			condition(application.ReadyCondition, metav1.ConditionFalse, "Held", message))
		until := metav1.NewTime(noon.Add(45 * time.Minute))
		app.Status.Objects[0] = application.ObjectStatus{
			ID: idOf("Deployment", "web"), Health: "Current", Reason: "Held", Message: "held until 2026-01-02T12:45:00Z", Fields: []string{path},
			Hold: &application.Hold{Until: until, Asked: "2026-01-02T12:45:00Z", Since: ago(15 * time.Minute)},
		}
		changed := ago(10 * time.Minute)
		app.Status.Drifts = []application.Drift{{
			Object: idOf("Deployment", "web"), Fields: []application.DriftedField{{Path: path, Want: "web:1", Have: "web:hotfix"}},
			Manager: "kubectl-set", Operation: "Update", Changed: &changed, Seen: ago(10 * time.Minute), Count: 1,
		}}
	})
}

func deleted(cm *corev1.ConfigMap) *corev1.ConfigMap {
	cm.DeletionTimestamp = new(metav1.NewTime(noon))
	return cm
}

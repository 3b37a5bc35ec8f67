package clitest

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

// Ago is a time before noon.
func Ago(d time.Duration) metav1.Time { return metav1.NewTime(Noon.Add(-d)) }

// ID identifies an object of namespace demo.
func ID(kind, name string) manifest.ID {
	id := manifest.ID{APIVersion: "v1", Kind: kind, Namespace: "demo", Name: name}
	if kind == "Deployment" {
		id.APIVersion = "apps/v1"
	}
	return id
}

// Created returns an Application that a user created three days ago.
func Created(name string, annotations ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: Ago(72 * time.Hour),
			Annotations: map[string]string{application.FormatAnnotation: application.Format},
		},
		Data: map[string]string{application.ManifestKey: webManifest},
	}
	for pair := range slices.Chunk(annotations, 2) {
		cm.Annotations[pair[0]] = pair[1]
	}
	return cm
}

// Admitted returns the Application as the webhook leaves it.
func Admitted(t *testing.T, cm *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	objects := []map[string]any{{"kind": "Deployment"}, {"kind": "Service"}}
	check.Must(t, application.Publish(cm, application.Documents{Mangled: objects, Applied: objects}))
	return cm
}

// Recorded returns it with a status that the agent of its cluster writes after edit. Before
// edit, it is running and ready.
func Recorded(t *testing.T, cm *corev1.ConfigMap, edit func(app *application.Application)) *corev1.ConfigMap {
	t.Helper()
	app, err := application.Read(cm)
	check.Must(t, err)
	app.Finalized, app.LastApplied = true, application.Publishing([]map[string]any{{"kind": "Deployment"}, {"kind": "Service"}})
	app.Inventory = []manifest.ID{ID("Deployment", "web"), ID("Service", "web")}
	app.Status = application.Status{
		ObservedSpec: app.Spec.Digest(), State: application.StateRunning,
		Conditions: []metav1.Condition{
			Condition(application.ReconciledCondition, metav1.ConditionTrue, "Reconciled", "all objects match the Application"),
			Condition(application.DriftedCondition, metav1.ConditionFalse, "NoDrift", ""),
			Condition(application.ContendedCondition, metav1.ConditionFalse, "NoCompetingWriter", ""),
			Condition(application.ConflictedCondition, metav1.ConditionFalse, "NoConflicts", ""),
			Condition(application.StalledCondition, metav1.ConditionFalse, "Progressing", ""),
			Condition(application.ReadyCondition, metav1.ConditionTrue, "Ready", "all objects match the Application, and are healthy"),
		},
		Objects: []application.ObjectStatus{
			{ID: ID("Deployment", "web"), Health: "Current"}, {ID: ID("Service", "web"), Health: "Current"},
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

// Condition returns a condition that holds for an hour.
func Condition(name string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: reason, Message: message, LastTransitionTime: Ago(time.Hour)}
}

// SetConditions replaces conditions of the status.
func SetConditions(app *application.Application, conditions ...metav1.Condition) {
	for _, c := range conditions {
		meta.SetStatusCondition(&app.Status.Conditions, c)
	}
}

// Rescaled returns a drift that was reverted.
func Rescaled(seen time.Duration, times int) application.Drift {
	changed := Ago(seen + time.Second)
	return application.Drift{
		Object: ID("Deployment", "web"), Fields: []application.DriftedField{{Path: "spec.replicas", Want: int64(2), Have: int64(5)}},
		Manager: "kubectl-scale", Subresource: "scale", Operation: "Update", Changed: &changed, Seen: Ago(seen),
		Repaired: "DriftReverted", After: &metav1.Duration{Duration: 12 * time.Millisecond}, Count: times,
	}
}

// WebApp returns an Application that runs, and has drifted.
func WebApp(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	return Recorded(t, Admitted(t, Created("web")), func(app *application.Application) {
		app.Status.Drifts = []application.Drift{
			Rescaled(5*time.Minute, 3),
			{
				Object: ID("Service", "web"), Seen: Ago(2 * time.Hour), Repaired: "Recreated",
				After: &metav1.Duration{Duration: 40 * time.Millisecond}, Count: 1,
			},
		}
	})
}

// HeldApp returns an Application with a held object, which has changed.
func HeldApp(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	return Recorded(t, Admitted(t, Created("held")), func(app *application.Application) {
		const path = "spec.template.spec.containers[0].image"
		message := "apps/v1 Deployment demo/web: " + path + ": held until 2026-01-02T12:45:00Z"
		SetConditions(app, Condition(application.ReconciledCondition, metav1.ConditionFalse, "Held", message),
			Condition(application.DriftedCondition, metav1.ConditionTrue, "Held", message),
			Condition(application.ReadyCondition, metav1.ConditionFalse, "Held", message))
		until := metav1.NewTime(Noon.Add(45 * time.Minute))
		app.Status.Objects[0] = application.ObjectStatus{
			ID: ID("Deployment", "web"), Health: "Current", Reason: "Held", Message: "held until 2026-01-02T12:45:00Z", Fields: []string{path},
			Hold: &application.Hold{Until: until, Asked: "2026-01-02T12:45:00Z", Since: Ago(15 * time.Minute)},
		}
		changed := Ago(10 * time.Minute)
		app.Status.Drifts = []application.Drift{{
			Object: ID("Deployment", "web"), Fields: []application.DriftedField{{Path: path, Want: "web:1", Have: "web:hotfix"}},
			Manager: "kubectl-set", Operation: "Update", Changed: &changed, Seen: Ago(10 * time.Minute), Count: 1,
		}}
	})
}

// Deleted returns the Application with a request for its deletion.
func Deleted(cm *corev1.ConfigMap) *corev1.ConfigMap {
	cm.DeletionTimestamp = new(metav1.NewTime(Noon))
	return cm
}

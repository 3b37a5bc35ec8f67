package e2e

import (
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// "When a field is not observed, Krake doesn't act on external changes made to this
// field": a change of such a field, or a new status, causes no request. The later
// repair shows that the agent had seen both.
func TestAnUnobservedChangeCausesNoRequest(t *testing.T) {
	namespace := newNginx(t)
	settle(t, namespace)
	before := auditMark(t)

	hub.Change(t, kit.Deployments, namespace, "nginx", `{"metadata": {"labels": {"note": "mine"}}}`)
	hub.Change(t, kit.Services, namespace, "nginx", `{"metadata": {"annotations": {"note": "mine"}}, "spec": {"sessionAffinity": "ClientIP"}}`)
	hub.Change(t, kit.Services, namespace, "nginx", `{"status": {"conditions": [{"type": "Mine", "status": "True", "reason": "Mine", "message": "", "lastTransitionTime": "2026-01-02T15:04:05Z"}]}}`, "status")
	awaitCalm(t, namespace)
	if made := before.Requests(t, ofAgent); len(made) > 0 {
		t.Errorf("want no request, got %v", made)
	}
	hub.Change(t, kit.Deployments, namespace, "nginx", `{"spec": {"replicas": 5, "progressDeadlineSeconds": 99}}`)
	hub.EventuallyField(t, int64(2), kit.Deployments, namespace, "nginx", "spec", "replicas")

	checkRepairs(t, eventuallyRepairs(t, before, 1, namespace), "/spec/replicas")
	live := hub.Get(t, kit.Deployments, namespace, "nginx")
	if got := kit.Field(live, "metadata", "labels", "note"); got != "mine" {
		t.Errorf("label note is %v, want mine", got)
	}
	if got := kit.Field(live, "spec", "progressDeadlineSeconds"); got != int64(99) {
		t.Errorf("progressDeadlineSeconds is %v, want 99", got)
	}
}

// settle waits until the agent has seen all earlier changes: it repairs a new change,
// and reports and records it.
func settle(t *testing.T, namespace string) {
	t.Helper()
	before := recordedRepairs(t, namespace)
	hub.Change(t, kit.Services, namespace, "nginx", `{"spec": {"ports": [{"port": 80, "targetPort": 81}]}}`)
	hub.EventuallyField(t, int64(80), kit.Services, namespace, "nginx", "spec", "ports", 0, "targetPort")
	eventuallyNotes(t, namespace, "DriftReverted", func(notes []string) bool { return len(notes) > 0 })
	kit.EventuallyTrue(t, "the status does not record the repair", func() bool {
		return recordedRepairs(t, namespace) > before
	})
	awaitCalm(t, namespace)
}

// recordedRepairs returns the number of repairs in the status of the Application.
func recordedRepairs(t *testing.T, namespace string) (repairs int) {
	t.Helper()
	for _, drift := range hub.App(namespace, "nginx").Read(t).Status.Drifts {
		if drift.Repaired != "" {
			repairs += drift.Count
		}
	}
	return repairs
}

package e2e

import (
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// An observing Application writes nothing to its objects and reports the differences. A
// suspended one does not compare. One that enforces again repairs all drift.
func TestModes(t *testing.T) {
	namespace := newNginx(t)
	awaitCalm(t, namespace)
	before := auditMark(t)
	wish(t, namespace, "nginx", "mode", "observe")
	hub.Change(t, kit.Deployments, namespace, "nginx", `{"spec": {"replicas": 3}}`)
	hub.Kubectl(t, "--namespace", namespace, "delete", "service", "nginx")
	kit.Eventually(t, func() string {
		message := eventuallyCondition(t, namespace, "nginx", "Drifted", "True", "ObserveMode")
		if strings.Contains(message, "Deployment "+namespace+"/nginx: spec.replicas") && strings.Contains(message, "Service "+namespace+"/nginx") {
			return ""
		}
		return message
	})
	eventuallyNotes(t, namespace, "DriftDetected", func(notes []string) bool { return len(notes) >= 2 }) // one for each
	wish(t, namespace, "nginx", "mode", "suspend")
	eventuallyCondition(t, namespace, "nginx", "Reconciled", "Unknown", "Suspended")
	hub.Change(t, kit.Deployments, namespace, "nginx", `{"spec": {"replicas": 4}}`)
	awaitCalm(t, namespace)
	for _, r := range before.Requests(t, ofAgent, kit.Request.IsWrite, kit.In(namespace)) {
		if r.Object.Resource != "events" && r.Object.Resource != "configmaps" {
			t.Errorf("want no write to an object, got %s", r)
		}
	}

	wish(t, namespace, "nginx", "mode", "enforce")
	hub.EventuallyField(t, 2, kit.Deployments, namespace, "nginx", "spec", "replicas")
	kit.EventuallyTrue(t, "the Service is not back", func() bool { return hub.Get(t, kit.Services, namespace, "nginx") != nil })
	eventuallyReconciled(t, namespace, "nginx")
	eventuallyCondition(t, namespace, "nginx", "Drifted", "False", "NoDrift")
	checkRepairs(t, eventuallyRepairs(t, before, 1, namespace), "/spec/replicas")
}

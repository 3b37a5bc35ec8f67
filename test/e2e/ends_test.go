package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// job is a Job with one Pod that ends in a phase, and stays Pending without one.
func job(name, ttl, phase string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  backoffLimit: 0
  %s
  template:
    metadata: {annotations: {stand-in.example.org/phase: %s}}
    spec:
      restartPolicy: Never
      containers: [{name: load, image: "load:1"}]
`, name, ttl, phase)
}

// creations counts the Jobs of a name that the agent has created in a namespace.
func creations(t *testing.T, m kit.Mark, namespace, name string) int {
	t.Helper()
	return len(m.Requests(t, ofAgent, kit.In(namespace), ofKind("jobs"), func(r kit.Request) bool {
		return r.Verb == "create" && r.Name() == name && r.IsAccepted()
	}))
}

// checkDone fails unless a Job has run once, is gone, and its Application keeps the state.
func checkDone(t *testing.T, m kit.Mark, namespace, name, state, why string) {
	t.Helper()
	hub.EventuallyGone(t, jobs, namespace, name)
	awaitCalm(t, namespace)
	if count := creations(t, m, namespace, name); count != 1 {
		t.Errorf("%s: the Job was created %d times", why, count)
	}
	eventuallyState(t, state, namespace, "app")
}

// Jobs that their TTL deletes run once, whatever they come to, and whether or not the agent is restarted.
func TestJobsThatTheirTTLDeletesRunOnce(t *testing.T) {
	if hub.HasKubelet() {
		cannotRun(t, "the stand-in for the kubelet ends the Pods")
	}
	for _, c := range []struct{ why, ttl, phase, state, ready string }{
		{"at once", "ttlSecondsAfterFinished: 0", "Succeeded", "COMPLETED", ""},
		{"after it has failed", "ttlSecondsAfterFinished: 1", "Failed", "FAILED", "change its manifest to run it again"},
	} {
		t.Run(c.why, func(t *testing.T) {
			namespace, m := newNamespace(t), auditMark(t)
			text := job("load", c.ttl, c.phase)
			createApplication(t, namespace, "app", text, "")
			checkDone(t, m, namespace, "load", c.state, "it is gone")
			withoutAgent(t, func() {})
			checkDone(t, m, namespace, "load", c.state, "after a restart of the agent")
			if message := hub.App(namespace, "app").Condition(t, application.ReadyCondition).Message; !strings.Contains(message, c.ready) {
				t.Errorf("Ready says %s", message)
			}
			text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n"
			respec(t, namespace, "app", text)
			hub.EventuallyField(t, "beside", kit.ConfigMaps, namespace, "beside", "metadata", "name")
			checkDone(t, m, namespace, "load", c.state, "with another object beside it")
			if drifts := hub.App(namespace, "app").Read(t).Status.Drifts; len(drifts) > 0 {
				t.Errorf("the history has %v", drifts)
			}

			respec(t, namespace, "app", strings.Replace(text, "load:1", "load:2", 1))
			kit.Eventually(t, func() string {
				if count := creations(t, m, namespace, "load"); count != 2 {
					return fmt.Sprintf("the Job was created %d times, and its manifest has changed", count)
				}
				return ""
			})
		})
	}
}

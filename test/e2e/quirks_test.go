package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// moreKinds lets the agent manage kinds that are not in the shipped roles.
const moreKinds = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: krake-agent-more
  labels: {krake.dev/aggregate-to-agent: "true"}
rules:
- {apiGroups: [""], resources: [pods, limitranges, resourcequotas], verbs: [get, list, watch, create, patch, delete]}
`

// The API server stores more, less or other text than a request
// has. Once learned, that is no drift: neither for a restarted agent, nor for one that compares everything
// every other second.
func TestOtherFormsOfAValueAreNoDrift(t *testing.T) {
	kit.Long(t, "many drifts")
	text, err := os.ReadFile("testdata/quirks.yaml")
	kit.Must(t, err)
	if count := strings.Count(string(text), "\nkind: "); count < 40 {
		t.Fatalf("%d objects, want 40 at least", count)
	}
	hub.Make(t, "", musicKinds+"---"+moreKinds)
	namespace := newNamespace(t)
	before := auditMark(t)
	createApplication(t, namespace, "quirks", string(text), "")
	eventuallyReconciled(t, namespace, "quirks")
	awaitCalm(t, namespace)
	for _, r := range repairs(t, before, namespace) {
		t.Errorf("what the API server has written otherwise was repaired: %s", r)
	}
	want := []string{
		"apps/v1 Deployment probes: spec.template.spec.containers[0].livenessProbe.timeoutSeconds, spec.template.spec.containers[0].startupProbe.failureThreshold",
		"v1 Pod pod: spec.containers[0].volumeMounts, spec.tolerations, spec.volumes",
		"music.example.com/v1 Artist pruned: spec.unknown",
	}
	// These are a zero that means the default, entries that admission adds to lists,
	// and a field that the kind does not have.
	if diff := cmp.Diff(want, normalizedByServer(t, namespace, "quirks")); diff != "" {
		t.Errorf("what is written otherwise (-want +got):\n%s", diff)
	}

	before = auditMark(t)
	withoutAgent(t, func() { lookOften(t) })
	checkCalm(t, before, namespace, "after two restarts and a few resyncs")
	hub.Change(t, kit.Services, namespace, "number", `{"spec": {"ports": [{"port": 80, "targetPort": 81}]}}`)
	hub.EventuallyField(t, 8080, kit.Services, namespace, "number", "spec", "ports", 0, "targetPort")
	eventuallyRepairs(t, before, 1, namespace)
}

// normalizedByServer returns the fields for which the agent has learned another form.
func normalizedByServer(t *testing.T, namespace, name string) []string {
	t.Helper()
	condition := hub.App(namespace, name).Condition(t, application.ReconciledCondition)
	_, text, _ := strings.Cut(condition.Message, "stores values in another form: ")
	if condition.Reason != "NormalizedByServer" {
		return nil
	}
	return strings.Split(strings.ReplaceAll(text, namespace+"/", ""), "; ")
}

// lookOften runs an agent that compares everything about every second, until it has
// done so a few times.
func lookOften(t *testing.T) {
	t.Helper()
	kubeconfig, err := both.AgentKubeconfig(t.Context(), application.LocalCluster)
	kit.Must(t, err)
	begin := auditMark(t)
	agent, err := both.RunAgent("often", kubeconfig, "--resync-period=1s")
	kit.Must(t, err)
	defer func() { kit.Must(t, agent.Stop()) }()
	kit.EventuallyTrue(t, "the agent has not listed the Services three times", func() bool {
		return len(begin.Requests(t, ofAgent, ofKind("services"), func(r kit.Request) bool { return r.Verb == "list" })) >= 3
	})
}

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// A field that is removed from the spec is removed from the object, because a container
// could otherwise stay privileged. This holds whether the agent runs at the change or
// starts later.
func TestRemovedFromTheSpec(t *testing.T) {
	kit.Long(t, "each resource is removed in turn")
	for name, around := range map[string]func(*testing.T, func()){
		"while the agent runs":    func(_ *testing.T, change func()) { change() },
		"while the agent is down": withoutAgent,
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			createApplication(t, namespace, "nginx", privileged, "")
			eventuallyReconciled(t, namespace, "nginx")
			awaitCalm(t, namespace)
			before := auditMark(t)
			around(t, func() {
				respec(t, namespace, "nginx", strings.NewReplacer("privileged: true, ", "", "terminationGracePeriodSeconds: 7", "restartPolicy: Always").Replace(privileged))
			})
			hub.EventuallyField(t, nil, kit.Deployments, namespace, "nginx", append(securityContext(), "privileged")...)
			awaitCalm(t, namespace)
			checkRepairs(t, eventuallyRepairs(t, before, 1, namespace),
				"/spec/template/spec/containers/0/securityContext/privileged", "/spec/template/spec/terminationGracePeriodSeconds")
			if got := kit.Field(hub.Get(t, kit.Deployments, namespace, "nginx"), append(securityContext(), "runAsUser")...); got != int64(1) {
				t.Errorf("runAsUser is %v, want 1", got)
			}

			// From then on, no agent repairs it.
			hub.Change(t, kit.Deployments, namespace, "nginx", `{"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 7}}}}`)
			awaitCalm(t, namespace)
			eventuallyRepairs(t, before, 1, namespace)
		})
	}
}

const privileged = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec:
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec:
      terminationGracePeriodSeconds: 7
      containers:
      - {name: nginx, image: "nginx:1.27", securityContext: {privileged: true, runAsUser: 1}}
`

func securityContext() []any {
	return []any{"spec", "template", "spec", "containers", 0, "securityContext"}
}

// A Service that becomes a ClusterIP loses its learned node port.
func TestNodePortToClusterIP(t *testing.T) {
	const manifest = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}}"
	namespace := newNamespace(t)
	createApplication(t, namespace, "web", manifest, `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: null
  ports:
  - {port: null, nodePort: null}
  - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}
`)
	eventuallyReconciled(t, namespace, "web")
	kit.Eventually(t, func() string {
		if learned := fmt.Sprint(document(t, namespace, "web", "status.learned")); !strings.Contains(learned, "nodePort") {
			return "no node port was learned: " + learned
		}
		return ""
	})
	before := auditMark(t)
	respec(t, namespace, "web", strings.ReplaceAll(manifest, "NodePort", "ClusterIP"))
	hub.EventuallyField(t, "ClusterIP", kit.Services, namespace, "web", "spec", "type")
	hub.EventuallyField(t, nil, kit.Services, namespace, "web", "spec", "ports", 0, "nodePort")
	awaitCalm(t, namespace)
	eventuallyReconciled(t, namespace, "web")
	if tries := before.Requests(t, ofAgent, kit.In(namespace), kit.Request.IsWrite, ofKind("services")); len(tries) > 3 {
		t.Errorf("%d writes to the Service, want 3 at most: %v", len(tries), tries)
	}
}

// The API server refuses to change a field. The agent tries again only if others change the object,
// or after a pause, and reports the field without its values; it carries out the other changes.
func TestImmutableFieldIsTriedAFewTimes(t *testing.T) {
	const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec:
  replicas: 1
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx, tier: immutable-canary}}
    spec: {containers: [{name: nginx, image: "nginx:1.27"}]}
`
	namespace := newNamespace(t)
	createApplication(t, namespace, "nginx", manifest, "")
	eventuallyReconciled(t, namespace, "nginx")
	awaitCalm(t, namespace)
	before := auditMark(t)
	respec(t, namespace, "nginx", strings.NewReplacer(
		"matchLabels: {app: nginx}", "matchLabels: {app: nginx, tier: immutable-canary}", "nginx:1.27", "nginx:1.28").Replace(manifest))
	hub.EventuallyField(t, "nginx:1.28", kit.Deployments, namespace, "nginx", "spec", "template", "spec", "containers", 0, "image")
	for _, kind := range []string{"Stalled", "Drifted"} {
		message := eventuallyCondition(t, namespace, "nginx", kind, "True", "Invalid")
		checkNames(t, message, "Deployment "+namespace+"/nginx", "spec.selector")
		if strings.Contains(message, "immutable-canary") {
			t.Errorf("condition %s repeats values: %s", kind, message)
		}
	}
	hub.Change(t, kit.Deployments, namespace, "nginx", `{"spec": {"replicas": 2}}`)
	hub.EventuallyField(t, 1, kit.Deployments, namespace, "nginx", "spec", "replicas")
	awaitCalm(t, namespace)

	refused := before.Requests(t, ofAgent, kit.In(namespace), isRepair,
		func(r kit.Request) bool { return r.Status.Code == http.StatusUnprocessableEntity })
	// The controller of Deployments writes an annotation with the status.
	changes := before.Requests(t, kit.In(namespace), ofKind("deployments"), kit.Request.IsWrite,
		func(r kit.Request) bool { return !ofAgent(r) && r.Status.Code == http.StatusOK })
	if most := 1 + len(changes) + 1; len(refused) < 1 || len(refused) > most {
		t.Errorf("%d tries were refused, want 1 to %d: one of the new spec, one after each change of others, one after a pause\n%v\n%v",
			len(refused), most, refused, changes)
	}
	eventuallyRepairs(t, before, 2, namespace)

	respec(t, namespace, "nginx", strings.ReplaceAll(manifest, "nginx:1.27", "nginx:1.28"))
	eventuallyReconciled(t, namespace, "nginx")
	eventuallyCondition(t, namespace, "nginx", "Stalled", "False", "Progressing")
}

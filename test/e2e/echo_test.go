package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	echoManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo-demo, namespace: secondary}
spec:
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      containers:
      - {name: echo, image: "registry.k8s.io/echoserver:1.10", ports: [{containerPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: echo-demo, namespace: secondary}
spec:
  type: NodePort
  selector: {app: echo}
  ports: [{port: 8080, protocol: TCP, targetPort: 8080}]
`
	echoSchema = `
apiVersion: v1
kind: Service
metadata: {name: echo-demo}
spec:
  selector: {app: null}
  ports:
  - {port: null, protocol: null, targetPort: null}
  - {port: null, protocol: null, targetPort: null}
  - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 4}
  sessionAffinity: null
`
)

// echoNamespace is the namespace of the example.
const echoNamespace = "secondary"

// The example of the custom observer schema: a Deployment with the default
// schema, and a Service with a custom one.
func TestEcho(t *testing.T) {
	kit.Long(t, "two agents answer each other")
	hub.CreateNamespace(t, echoNamespace)
	t.Cleanup(func() {
		hub.Kubectl(t, "--namespace", echoNamespace, "delete", "configmaps", "--selector", "krake.dev/cluster", "--timeout", kit.Timeout.String())
		hub.Kubectl(t, "delete", "namespace", echoNamespace)
	})
	createApplication(t, echoNamespace, "echo-demo", echoManifest, echoSchema)
	eventuallyState(t, "RUNNING", echoNamespace, "echo-demo")
	t.Run("ports", echoPorts)
	t.Run("service", echoServiceFields)
	t.Run("deployment", echoDeployment)
}

// ports returns the ports that a client writes, by number.
func ports(numbers ...int) string {
	var texts []string
	for _, number := range numbers {
		texts = append(texts, fmt.Sprintf(`{"name": "p%[1]d", "port": %[1]d, "protocol": "TCP", "targetPort": %[1]d}`, number))
	}
	return `{"spec": {"ports": [` + strings.Join(texts, ",") + `]}}`
}

// "The presence of a second element in the ports list in the custom observer schema
// doesn't guarantee its presence": it may be absent, and be removed and added again, if
// its value stays the same. A length outside of the limits is drift.
func echoPorts(t *testing.T) {
	const namespace = echoNamespace
	before := auditMark(t)
	portsOf := func() string {
		var numbers []any
		items, _ := kit.Field(hub.Get(t, kit.Services, namespace, "echo-demo"), "spec", "ports").([]any)
		for _, item := range items {
			port, _ := item.(map[string]any)
			numbers = append(numbers, port["port"])
		}
		return fmt.Sprint(numbers)
	}
	eventuallyPorts := func(want string) {
		t.Helper()
		kit.Eventually(t, func() string {
			if got := portsOf(); got != want {
				return fmt.Sprintf("ports are %s, want %s", got, want)
			}
			return ""
		})
	}

	// The second port is observed when it appears, without a patch.
	hub.Change(t, kit.Services, namespace, "echo-demo", ports(8080, 81))
	kit.Eventually(t, func() string {
		learned := document(t, namespace, "echo-demo", "status.learned")
		want := parse(t, `
- apiVersion: v1
  kind: Service
  metadata: {name: echo-demo, namespace: secondary}
  spec: {sessionAffinity: None, ports: [{port: 81, protocol: TCP, targetPort: 81}]}
`)
		return cmp.Diff(want, learned)
	})
	if got := portsOf(); got != "[8080 81]" {
		t.Errorf("ports are %s, want both", got)
	}

	// It may be removed, and added again in another place; with another value it is
	// drift in any place. Another element may take its place meanwhile.
	hub.Change(t, kit.Services, namespace, "echo-demo", ports(8080))
	hub.Change(t, kit.Services, namespace, "echo-demo", ports(8080, 82))
	hub.Change(t, kit.Services, namespace, "echo-demo", ports(82, 81, 8080))
	hub.Change(t, kit.Services, namespace, "echo-demo", `{"spec": {"ports": [
		{"name": "a", "port": 82}, {"name": "b", "port": 81, "targetPort": 9}, {"name": "c", "port": 8080}]}}`)
	hub.EventuallyField(t, 81, kit.Services, namespace, "echo-demo", "spec", "ports", 1, "targetPort")
	eventuallyPorts("[82 81 8080]")

	// Five exceed the maximum: the list is reduced to the known ones.
	hub.Change(t, kit.Services, namespace, "echo-demo", ports(83, 8080, 84, 81, 85))
	eventuallyPorts("[8080 81]")

	// The second port and the five.
	made := eventuallyRepairs(t, before, 2, namespace)
	checkRepairs(t, made, "/spec/ports/0", "/spec/ports/1", "/spec/ports/2", "/spec/ports/4")
}

// The manifest sets type, but the schema does not observe it: it is not repaired. The
// schema observes sessionAffinity, which is not in the manifest: it must keep the API's
// first value.
func echoServiceFields(t *testing.T) {
	const namespace = echoNamespace
	before := auditMark(t)
	hub.Change(t, kit.Services, namespace, "echo-demo", `{"spec": {"type": "ClusterIP"}}`)
	hub.Change(t, kit.Services, namespace, "echo-demo", `{"spec": {"sessionAffinity": "ClientIP"}}`)
	hub.EventuallyField(t, "None", kit.Services, namespace, "echo-demo", "spec", "sessionAffinity")
	hub.EventuallyField(t, "ClusterIP", kit.Services, namespace, "echo-demo", "spec", "type")
	checkRepairs(t, eventuallyRepairs(t, before, 1, namespace), "/spec/sessionAffinity")
}

// The Deployment has no custom schema: all of its manifest is observed.
func echoDeployment(t *testing.T) {
	const namespace = echoNamespace
	hub.Kubectl(t, "--namespace", namespace, "set", "image", "deployment/echo-demo", "echo=other")
	hub.EventuallyField(t, "registry.k8s.io/echoserver:1.10", kit.Deployments, namespace, "echo-demo", "spec", "template", "spec", "containers", 0, "image")
	hub.Kubectl(t, "--namespace", namespace, "scale", "deployment/echo-demo", "--replicas=3")
	hub.Kubectl(t, "--namespace", namespace, "label", "deployment/echo-demo", "team=mine")
	hub.Change(t, kit.Deployments, namespace, "echo-demo", `{"spec": {"template": {"metadata": {"labels": {"app": "echo", "extra": "mine"}}}}}`)
	hub.Change(t, kit.Deployments, namespace, "echo-demo", `{"spec": {"template": {"spec": {"containers": [{"name": "echo", "image": "x"}]}}}}`)
	hub.EventuallyField(t, "registry.k8s.io/echoserver:1.10", kit.Deployments, namespace, "echo-demo", "spec", "template", "spec", "containers", 0, "image")
	hub.EventuallyField(t, 8080, kit.Deployments, namespace, "echo-demo", "spec", "template", "spec", "containers", 0, "ports", 0, "containerPort")
	hub.EventuallyField(t, 3, kit.Deployments, namespace, "echo-demo", "spec", "replicas")
	hub.EventuallyField(t, "mine", kit.Deployments, namespace, "echo-demo", "metadata", "labels", "team")
}

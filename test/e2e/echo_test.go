package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// The example of the custom observer schema in Krake's documentation of the Application
// Observer: a Deployment with the default schema, and a Service with a custom one.
func TestEcho(t *testing.T) {
	kit.Long(t, "ten changes of a list")
	hub.CreateNamespace(t, echoNamespace)
	t.Cleanup(func() {
		remove(t, echoNamespace, "echo-demo")
		kit.Must(t, hub.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), echoNamespace, metav1.DeleteOptions{}))
	})
	createApplication(t, echoNamespace, "echo-demo", echoManifest, echoSchema)
	eventuallyState(t, "RUNNING", echoNamespace, "echo-demo")
	checkPorts(t)
}

// ports returns the ports that a client writes, by number.
func ports(numbers ...int) string {
	var texts []string
	for _, number := range numbers {
		texts = append(texts, fmt.Sprintf(`{"name": "p%[1]d", "port": %[1]d, "protocol": "TCP", "targetPort": %[1]d}`, number))
	}
	return `{"spec": {"ports": [` + strings.Join(texts, ",") + `]}}`
}

// checkPorts: "The presence of a second element in the ports list in the custom observer
// schema doesn't guarantee its presence". It may be absent, and be removed and added again, if
// its value stays the same. A length outside of the limits is drift.
func checkPorts(t *testing.T) {
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

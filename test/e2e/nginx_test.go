package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/kit"
)

const nginxManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec:
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec:
      containers:
      - {name: nginx, image: "nginx:1.27", ports: [{containerPort: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: nginx}
spec:
  selector: {app: nginx}
  ports:
  - {port: 80, targetPort: 80}
`

// nginxDeployment returns the Deployment of the Application nginx.
func nginxDeployment() string {
	deployment, _, _ := strings.Cut(nginxManifest, "---")
	return deployment
}

// newNginx creates the Application nginx, and waits until it runs.
func newNginx(t *testing.T) (namespace string) {
	t.Helper()
	namespace = newNamespace(t)
	createApplication(t, namespace, "nginx", nginxManifest, "")
	eventuallyState(t, "RUNNING", namespace, "nginx")
	return namespace
}

// "If a user changes the image version of the container in the Deployment or a label in
// the Service, this will be detected". The request that reverts it has only that field
// and the guard.
func TestAnObservedFieldIsReverted(t *testing.T) {
	namespace := newNginx(t)
	before := auditMark(t)
	hub.Kubectl(t, "--namespace", namespace, "set", "image", "deployment/nginx", "nginx=nginx:evil")
	hub.EventuallyField(t, "nginx:1.27", kit.Deployments, namespace, "nginx", "spec", "template", "spec", "containers", 0, "image")

	made := eventuallyRepairs(t, before, 1, namespace)
	operations := operationsOf(t, made[0])
	guard := operations[0]
	want := []operation{
		{Op: "replace", Path: "/metadata/resourceVersion", Value: guard.Value},
		{Op: "replace", Path: "/spec/template/spec/containers/0/image", Value: "nginx:1.27"},
	}
	if diff := cmp.Diff(want, operations); diff != "" {
		t.Errorf("the body of the repair (-want +got):\n%s", diff)
	}
	eventuallyNotes(t, namespace, "DriftReverted", func(notes []string) bool {
		return len(notes) == 1 && strings.Contains(notes[0], "spec.template.spec.containers[0].image, changed by kubectl-set (Update at ")
	})
}

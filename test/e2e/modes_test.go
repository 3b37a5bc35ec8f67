package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

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

// A suspended Application is deleted with its objects as any other.
func TestASuspendedApplicationIsDeleted(t *testing.T) {
	namespace := newNginx(t)
	wish(t, namespace, "nginx", "mode", "suspend")
	eventuallyCondition(t, namespace, "nginx", "Reconciled", "Unknown", "Suspended")
	hub.Kubectl(t, "--namespace", namespace, "delete", "configmap", "nginx", "--timeout", kit.Timeout.String())
	if hub.Get(t, kit.Deployments, namespace, "nginx") != nil || hub.Get(t, kit.Services, namespace, "nginx") != nil {
		t.Error("objects of the Application are left")
	}
}

var drummers = schema.GroupVersionResource{Group: "music.example.com", Version: "v1", Resource: "drummers"}

const (
	drummerRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: krake-agent-drummers
  labels: {krake.dev/aggregate-to-agent: "true"}
rules:
- {apiGroups: [music.example.com], resources: [drummers], verbs: [get, list, watch, create, patch, delete]}
`
	drummerKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: drummers.music.example.com}
spec:
  group: music.example.com
  names: {kind: Drummer, listKind: DrummerList, plural: drummers, singular: drummer}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {sticks: {type: integer}}}}}}
`
)

// A kind that the cluster does not serve delays only its own objects, which are created
// soon after it is served.
func TestOneUnservedKind(t *testing.T) {
	kit.Long(t, "a kind is unserved until the agent asks again")
	const soon = 30 * time.Second
	namespace := newNamespace(t)
	hub.KubectlWith(t, drummerRole, "create", "-f", "-")
	t.Cleanup(func() { hub.Kubectl(t, "delete", "clusterrole", "krake-agent-drummers") })
	createApplication(t, namespace, "nginx", nginxManifest+`---
apiVersion: music.example.com/v1
kind: Drummer
metadata: {name: ringo}
spec: {sticks: 2}
`, "")
	checkNames(t, eventuallyCondition(t, namespace, "nginx", "Stalled", "True", "KindNotFound"), "Drummer")
	settle(t, namespace) // the other objects exist, and are repaired

	hub.KubectlWith(t, drummerKind, "create", "-f", "-")
	t.Cleanup(func() { hub.Kubectl(t, "delete", "crd", "drummers.music.example.com") })
	hub.Kubectl(t, "wait", "--for=condition=Established", "crd/drummers.music.example.com")
	known := time.Now()
	kit.EventuallyTrue(t, "the object of the new kind is not there", func() bool { return hub.Get(t, drummers, namespace, "ringo") != nil })
	if took := time.Since(known); took > soon {
		t.Errorf("the object was created %s after its kind was known, want %s at most", took, soon)
	}
	eventuallyReconciled(t, namespace, "nginx")
	hub.Change(t, drummers, namespace, "ringo", `{"spec": {"sticks": 1}}`)
	hub.EventuallyField(t, 2, drummers, namespace, "ringo", "spec", "sticks")
	hub.Kubectl(t, "--namespace", namespace, "delete", "configmap", "nginx", "--timeout", kit.Timeout.String())
}

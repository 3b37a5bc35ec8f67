package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/status"
	"github.com/krake-observer/krake-observer/test/kit"
)

// replaceIn applies an Application whose manifest has another text in one place.
func replaceIn(t *testing.T, namespace, manifest, former, next string) {
	t.Helper()
	hub.KubectlWith(t, applicationYAML(t, namespace, "app", strings.ReplaceAll(manifest, former, next), ""), "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// checkMessage waits for the reason of the condition Ready, and compares parts of its message.
func checkMessage(t *testing.T, namespace, reason string, parts ...string) {
	t.Helper()
	message := eventuallyCondition(t, namespace, "app", application.ReadyCondition, metav1.ConditionFalse, reason)
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("the message lacks %q: %s", part, message)
		}
	}
	if strings.Contains(message, "hunter2") {
		t.Errorf("the message has a value: %s", message)
	}
}

// What may not change is refused with the API server's reason, and with the remedy that helps. It then does.
func TestWhatMayNotChangeSaysSo(t *testing.T) {
	const anew = "delete the object: the agent creates it again"
	for _, c := range []struct{ why, manifest, former, next, reason, resource string }{
		{"an immutable ConfigMap", "{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed}, immutable: true, data: {a: hunter2-1}}", "hunter2-1", "hunter2-2",
			"data: Forbidden: field is immutable when `immutable` is set", "configmap"},
		{"the template of a Job", `{apiVersion: batch/v1, kind: Job, metadata: {name: fixed}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a:1", env: [{name: A, value: hunter2-1}]}]}}}}`,
			"hunter2-1", "hunter2-2", "spec.template: Invalid value: field is immutable", "job"},
		{"the Service of a StatefulSet", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: fixed}, spec: {replicas: 0, serviceName: one, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: "a:1", args: [hunter2]}]}}}}`,
			"serviceName: one", "serviceName: two", "spec: Forbidden: updates to statefulset spec for fields other than", "statefulset"},
		{"a claim", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: fixed}, spec: {storageClassName: hunter2, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
			"ReadWriteOnce", "ReadOnlyMany", "spec: Forbidden: spec is immutable after creation except", ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			namespace := newNamespace(t)
			createApplication(t, namespace, "app", c.manifest, "")
			eventuallyReconciled(t, namespace, "app")
			replaceIn(t, namespace, c.manifest, c.former, c.next)
			checkMessage(t, namespace, status.Invalid, c.reason, anew)
			if c.resource != "" { // a claim waits for its Pods
				hub.Kubectl(t, "--namespace", namespace, "delete", c.resource, "fixed")
				eventuallyReconciled(t, namespace, "app")
			}
		})
	}
}

// A quota is named, and no permission helps against it.
func TestAQuotaIsNamed(t *testing.T) {
	for _, c := range []struct{ why, counts, manifest string }{
		{"of Services", "services", "{apiVersion: v1, kind: Service, metadata: {name: many}, spec: {ports: [{port: 80}]}}"},
		{"of claims", "persistentvolumeclaims", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: many}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"},
		{"of Deployments", "count/deployments.apps", kit.WebManifest},
	} {
		t.Run(c.why, func(t *testing.T) {
			namespace := newNamespace(t)
			hub.KubectlWith(t, "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few}\nspec: {hard: {"+c.counts+": 0}}\n", "--namespace", namespace, "create", "-f", "-")
			hub.EventuallyField(t, "0", schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}, namespace, "few", "status", "hard", c.counts)
			createApplication(t, namespace, "app", c.manifest, "")
			checkMessage(t, namespace, status.Forbidden, "exceeded quota: few, requested: "+c.counts+"=1", "raise the quota, or request less: no permission helps")
			hub.Kubectl(t, "--namespace", namespace, "delete", "resourcequota", "few")
			eventuallyReconciled(t, namespace, "app")
		})
	}
}

// For a kind in a version that is no longer served, the served one is named.
func TestTheServedVersionIsNamed(t *testing.T) {
	for _, c := range []struct{ written, kind, served string }{
		{"batch/v1beta1", "CronJob", "batch/v1"},
		{"policy/v1beta1", "PodDisruptionBudget", "policy/v1"},
		{"extensions/v1beta1", "Ingress", "networking.k8s.io/v1"},
		{"v1", "Deployment", "apps/v1"},
	} {
		t.Run(c.written+" "+c.kind, func(t *testing.T) {
			namespace := newNamespace(t)
			createApplication(t, namespace, "app", "{apiVersion: "+c.written+", kind: "+c.kind+", metadata: {name: old}}", "")
			checkMessage(t, namespace, status.KindNotFound, "the cluster serves "+c.kind+" in "+c.served)
		})
	}
}

// An object that is being deleted, and is wanted again, waits for finalizers, which the status names. It is created
// when they are gone.
func TestTheFinalizerThatBlocksIsNamed(t *testing.T) {
	const beside = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: beside}}\n"
	for _, c := range []struct{ resource, manifest string }{
		{"configmap", "{apiVersion: v1, kind: ConfigMap, metadata: {name: stuck}, data: {v: one}}\n"},
		{"service", "{apiVersion: v1, kind: Service, metadata: {name: stuck, annotations: {v: one}}, spec: {ports: [{port: 80}]}}\n"},
		{"deployment", strings.ReplaceAll(kit.WebManifest, "{name: web}", "{name: stuck, annotations: {v: one}}")},
		{"serviceaccount", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: stuck, annotations: {v: one}}}\n"},
	} {
		t.Run(c.resource, func(t *testing.T) {
			namespace := newNamespace(t)
			createApplication(t, namespace, "app", c.manifest+beside, "")
			eventuallyReconciled(t, namespace, "app")
			finalize := func(finalizers string) {
				hub.Kubectl(t, "--namespace", namespace, "patch", c.resource, "stuck", "--type=merge", "--patch", `{"metadata":{"finalizers":`+finalizers+`}}`)
			}
			finalize(`["example.org/x"]`)
			replaceIn(t, namespace, beside, "---\n", "")
			checkMessage(t, namespace, status.DeletionBlocked, "its deletion waits for its finalizers example.org/x: the programs that set them remove them")
			replaceIn(t, namespace, c.manifest+beside, "one", "two")
			kit.Eventually(t, func() string {
				message := hub.App(namespace, "app").Condition(t, application.ReadyCondition).Message
				if !strings.Contains(message, "Terminating: its deletion waits for its finalizers example.org/x") {
					return "Ready says " + message
				}
				return ""
			})
			finalize("null")
			eventuallyState(t, "RUNNING", namespace, "app")
			eventuallyReconciled(t, namespace, "app")
		})
	}
}

package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/test/kit"
)

// canaries are unique strings, by the place where a client puts them.
type canaries map[string]string

func (c canaries) put(where string) string {
	c[where] = "canary-" + strings.ToLower(rand.Text())
	return c[where]
}

// check fails for each canary in a text.
func (c canaries) check(t *testing.T, place string, text []byte) {
	t.Helper()
	for where, canary := range c {
		if bytes.Contains(text, []byte(canary)) {
			t.Errorf("%s tells the %s", place, where)
		}
	}
}

// A value in a field may be a password. No value of a
// manifest, a changed object, or an API server's refusal gets into logs, Events, metrics, or
// the status. The documents that publish the spec and the observed fields are excepted. No
// manifest has a Secret with data.
func TestValuesAppearInNoLogEventMetricOrStatus(t *testing.T) {
	kit.Long(t, "many namespaces")
	namespace := newNamespace(t)
	token := metricsReader(t, namespace)
	planted := canaries{}
	createApplication(t, namespace, "nginx", secretive(planted), "")
	eventuallyReconciled(t, namespace, "nginx")
	before := auditMark(t)
	tamper(t, namespace, "reverted", planted)
	eventuallyRepairs(t, before, 1, namespace)
	hub.App(namespace, "nginx").Annotate(t, "mode", "observe")
	tamper(t, namespace, "observed", planted)
	eventuallyCondition(t, namespace, "nginx", "Drifted", "True", "ObserveMode")
	refused := beRefused(t, namespace, planted)
	if len(planted) < 20 {
		t.Errorf("%d canaries, want 20 at least", len(planted))
	}
	checkLogsAndEvents(t, namespace, planted)
	for _, url := range metricsURLs(t) {
		planted.check(t, url, []byte(awaitMetrics(t, url, token)))
		if code, text := fetch(t, strings.TrimSuffix(url, "/metrics")+"/debug/pprof/", token); code != http.StatusNotFound {
			t.Errorf("%d: somebody who reads the metrics can look into the process: %s", code, text)
		}
	}
	for _, name := range append(refused, "nginx") {
		planted.check(t, "the Application "+name, statusOf(t, namespace, name))
	}
}

// secretive is a manifest with canaries in its fields.
func secretive(planted canaries) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, labels: {a: %s}, annotations: {a: %s}}
spec:
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}, annotations: {a: %s}}
    spec:
      containers:
      - {name: nginx, image: "nginx:1.27", env: [{name: A, value: %s}], args: [%s], command: [%s]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config, labels: {a: "1"}}
data: {a: %s}
binaryData: {b: AAEC}
`, planted.put("label of the manifest"), planted.put("annotation of the manifest"), planted.put("annotation of the manifest's Pods"),
		planted.put("environment of the manifest"), planted.put("arguments of the manifest"), planted.put("command of the manifest"),
		planted.put("data of the manifest"))
}

// tamper changes observed and other fields.
func tamper(t *testing.T, namespace, what string, planted canaries) {
	t.Helper()
	put := func(where string) string { return planted.put(where + " that was " + what) }
	hub.Change(t, kit.Deployments, namespace, "nginx", fmt.Sprintf(`{
		"metadata": {"labels": {"a": %q, "unobserved": %q}, "annotations": {"a": %q, "krake.dev/hold-until": %q}},
		"spec": {"template": {"metadata": {"annotations": {"a": %q}}, "spec": {"containers": [
			{"name": "nginx", "image": "nginx:1.27", "env": [{"name": "A", "value": %q}], "args": [%q], "command": [%q]}]}}}}`,
		put("label"), put("unobserved label"), put("annotation"), put("time of a hold"), put("annotation of Pods"),
		put("environment"), put("argument"), put("command")))
	hub.Change(t, kit.ConfigMaps, namespace, "config", fmt.Sprintf(`{"data": {"a": %q, "unobserved": %q}, "metadata": {"labels": {"a": %q}}}`,
		put("data"), put("unobserved data"), put("label of a ConfigMap")))
}

// denyServiceAccounts makes the API server refuse ServiceAccounts in a namespace, with
// a text that repeats an annotation.
func denyServiceAccounts(t *testing.T, namespace string) {
	t.Helper()
	t.Cleanup(hub.Make(t, "", fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [serviceaccounts]}]
  validations: [{expression: "false", messageExpression: "'it says ' + object.metadata.annotations['a']"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, namespace)))
	probe := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "probe", Annotations: map[string]string{"a": "b"}}}
	kit.Eventually(t, func() string {
		_, err := hub.CoreV1().ServiceAccounts(namespace).Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "it says b") {
			return fmt.Sprintf("the policy is not enforced: %v", err)
		}
		return ""
	})
}

// beRefused creates Applications whose objects the API server refuses, each with a text
// that repeats the request, and returns their names.
func beRefused(t *testing.T, namespace string, planted canaries) []string {
	t.Helper()
	denyServiceAccounts(t, namespace)
	refused := map[string]string{
		"value":  "{apiVersion: v1, kind: Service, metadata: {name: value}, spec: {type: " + planted.put("value that is not supported") + ", ports: [{port: 80}]}}",
		"text":   "{apiVersion: batch/v1, kind: CronJob, metadata: {name: text}, spec: {schedule: " + planted.put("value that cannot be parsed") + ", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}",
		"format": "{apiVersion: v1, kind: Service, metadata: {name: format}, spec: {ports: [{port: 80}], clusterIP: " + planted.put("value of a wrong format") + "}}",
		"policy": "{apiVersion: v1, kind: ServiceAccount, metadata: {name: policy, annotations: {a: " + planted.put("value that a policy repeats") + "}}}",
	}
	var names []string
	for name, manifest := range refused {
		createApplication(t, namespace, name, manifest, "")
		hub.EventuallyField(t, "FAILED", kit.ConfigMaps, namespace, name, "metadata", "labels", "krake.dev/state")
		names = append(names, name)
	}
	wrong := fmt.Sprintf(`{"metadata": {"annotations": {"krake.dev/mode": %q}}}`, planted.put("wrong mode"))
	if err := hub.App(namespace, "nginx").TryPatch(t.Context(), wrong); err == nil {
		t.Error("a wrong mode was accepted")
	}
	return names
}

// eventsOf returns our Events in a namespace.
func eventsOf(t *testing.T, namespace string) []byte {
	t.Helper()
	list, err := hub.Dynamic.Resource(kit.Events).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	kit.Must(t, err)
	// A kubelet repeats the command that it could not start, for all users who may read
	// the Pod.
	list.Items = slices.DeleteFunc(list.Items, func(event unstructured.Unstructured) bool {
		return kit.Field(&event, "reportingController") == "kubelet"
	})
	return kit.JSON(t, list)
}

// statusOf returns an Application without its spec, and without the documents that
// publish the spec and the observed fields.
func statusOf(t *testing.T, namespace, name string) []byte {
	t.Helper()
	cm := hub.Get(t, kit.ConfigMaps, namespace, name)
	for _, key := range []string{
		"spec.manifest", "spec.observer_schema", "status.mangled_observer_schema", "status.last_applied_manifest", "status.last_observed_manifest",
	} {
		unstructured.RemoveNestedField(cm.Object, "data", key)
	}
	text := kit.JSON(t, cm.Object)
	if !bytes.Contains(text, []byte("conditions")) {
		t.Errorf("the status of %s is not there: %s", name, text)
	}
	return text
}

// An administrator has granted the agent rights on Secrets. Whatever manifest and observer schema ask for, no value of a
// Secret is in the Application, in Events or in logs: neither of its data, nor of its annotations.
func TestNoValueOfASecretIsPublished(t *testing.T) {
	t.Cleanup(hub.Make(t, "", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: krake-agent-secrets, labels: {krake.dev/aggregate-to-agent: "true"}}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get, list, watch, create, patch, delete]}]
`))
	for _, c := range []struct{ name, manifest, schema string }{
		{"the manifest leaves the values to others", "{apiVersion: v1, kind: Secret, metadata: {name: vault, annotations: null}, type: Opaque, data: null, stringData: null}", ""},
		{"the observer schema has annotations without values", "{apiVersion: v1, kind: Secret, metadata: {name: vault}, type: Opaque}",
			"{apiVersion: v1, kind: Secret, metadata: {name: vault, annotations: {note: null}}, type: null}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			namespace := newNamespace(t)
			planted := canaries{}
			password := planted.put("password in the annotation of kubectl apply")
			planted["password in the data"] = base64.StdEncoding.EncodeToString([]byte(password))
			hub.KubectlWith(t, fmt.Sprintf("---\n{apiVersion: v1, kind: Secret, metadata: {name: vault, annotations: {note: %s}}, stringData: {password: %s}}\n",
				planted.put("annotation"), password), "--namespace", namespace, "apply", "-f", "-")
			createApplication(t, namespace, "nginx", c.manifest, c.schema, kit.Annotation("mode", "observe"), kit.Annotation("adopt", "true"))
			eventuallyCondition(t, namespace, "nginx", "Drifted", "True", "ObserveMode")
			checkUntold(t, namespace, planted)
			hub.App(namespace, "nginx").Annotate(t, "mode", "enforce")
			eventuallyReconciled(t, namespace, "nginx")
			checkUntold(t, namespace, planted)
		})
	}
}

// checkUntold fails for each canary in any part of the Application nginx, in an Event or in a log.
func checkUntold(t *testing.T, namespace string, planted canaries) {
	t.Helper()
	checkLogsAndEvents(t, namespace, planted)
	planted.check(t, "the Application", kit.JSON(t, hub.Get(t, kit.ConfigMaps, namespace, "nginx").Object))
}

// checkLogsAndEvents fails for each canary in an Event or in a log, once nothing is written any more.
func checkLogsAndEvents(t *testing.T, namespace string, planted canaries) {
	t.Helper()
	awaitCalm(t, namespace)
	planted.check(t, "an Event", eventsOf(t, namespace))
	logs, err := both.LogFiles(t.Context())
	kit.Must(t, err)
	for _, path := range logs {
		text, err := os.ReadFile(path)
		kit.Must(t, err)
		planted.check(t, path, text)
	}
}

// In mode observe, an Application that adopts objects shows nothing of an object that it has not adopted yet.
func TestObserveModeReadsNoForeignObject(t *testing.T) {
	namespace := newNamespace(t)
	planted := canaries{}
	hub.Make(t, namespace, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {key: "+planted.put("data")+"}}")
	createApplication(t, namespace, "nginx", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: null}", kit.Annotation("mode", "observe"), kit.Annotation("adopt", "true"))
	checkNames(t, eventuallyCondition(t, namespace, "nginx", "Reconciled", "False", "Drifted"), "ConfigMap "+namespace+"/settings", "would be taken over")
	checkUntold(t, namespace, planted)
}

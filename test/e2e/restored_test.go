package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// restored is a change of an object after which the object has to be as before.
type restored struct {
	name, manifest, schema string
	// object is the object as kubectl names it.
	object string
	// patch is a JSON Patch of another client.
	patch string
}

// running returns a Deployment with these fields in its Pod, beside the containers, and with these in its container.
func running(pod, container string) string {
	return workload("", container, pod)
}

// policy returns a NetworkPolicy.
func policy(spec string) string {
	return "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: store}, spec: " + spec + "}"
}

func restoredCases() []restored {
	const inPod, inContainer = "/spec/template/spec", "/spec/template/spec/containers/0"
	const pairs = "env: [{name: A, value: a}, {name: B, value: $(A)b}, {name: C, value: c}]"
	return []restored{
		// A list without keys.
		{"first rule of a NetworkPolicy removed", policy(`{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {a: b}}, namespaceSelector: {matchLabels: {c: d}}}]},
			{from: [{podSelector: {matchLabels: {e: f}}}], ports: [{port: 9090}]}]}`), "", "networkpolicy/store", `[{"op":"remove","path":"/spec/ingress/0"}]`},
		{"a rule of a NetworkPolicy added in front", policy(`{podSelector: {}, ingress: [{ports: [{port: 9090}]}]}`), "", "networkpolicy/store",
			`[{"op":"add","path":"/spec/ingress/0","value":{"from":[{"ipBlock":{"cidr":"0.0.0.0/0"}}]}}]`},
		{"rules of a NetworkPolicy swapped", policy(`{podSelector: {}, egress: [{ports: [{port: 1, protocol: UDP}]}, {to: [{podSelector: {}}]}]}`), "", "networkpolicy/store",
			`[{"op":"move","from":"/spec/egress/0","path":"/spec/egress/1"}]`},
		{"first toleration removed", running("tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 3}, {key: b, value: c}]", ""), "", "deployment/store",
			`[{"op":"remove","path":"` + inPod + `/tolerations/0"}]`},
		{"an argument inserted", running("", "args: [a, b, c]"), "", "deployment/store", `[{"op":"add","path":"` + inContainer + `/args/1","value":"x"}]`},
		{"a rule of an Ingress removed", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: store}, spec: {rules: [
			{host: a.example.org, http: {paths: [{path: /a, pathType: Exact, backend: {service: {name: a, port: {number: 1}}}}]}}, {host: b.example.org}]}}`, "", "ingress/store",
			`[{"op":"remove","path":"/spec/rules/0"}]`},

		// An empty value.
		{"a rule in an empty list", policy(`{podSelector: {}, policyTypes: [Ingress], ingress: []}`), "", "networkpolicy/store", `[{"op":"add","path":"/spec/ingress","value":[{}]}]`},
		{"a label in an empty selector", policy(`{podSelector: {}, policyTypes: [Ingress]}`), "", "networkpolicy/store",
			`[{"op":"add","path":"/spec/podSelector/matchLabels","value":{"app":"none"}}]`},
		{"a peer in an empty rule", policy(`{podSelector: {}, egress: [{}]}`), "", "networkpolicy/store", `[{"op":"add","path":"/spec/egress/0/ports","value":[{"port":1}]}]`},
		{"a medium in an empty directory", running("volumes: [{name: v, emptyDir: {}}]", ""), "", "deployment/store",
			`[{"op":"add","path":"` + inPod + `/volumes/0/emptyDir/medium","value":"Memory"}]`},
		{"an empty security context filled", running("securityContext: {}", ""), "", "deployment/store", `[{"op":"add","path":"` + inPod + `/securityContext/runAsUser","value":0}]`},

		// Order.
		{"the first variable removed", running("", pairs), "", "deployment/store", `[{"op":"remove","path":"` + inContainer + `/env/0"}]`},
		{"variables in another order", running("", pairs), "", "deployment/store", `[{"op":"move","from":"` + inContainer + `/env/0","path":"` + inContainer + `/env/2"}]`},
		{"the first init container removed", running("initContainers: [{name: a, image: a}, {name: b, image: b}]", ""), "", "deployment/store",
			`[{"op":"remove","path":"` + inPod + `/initContainers/0"}]`},
		{"init containers swapped, one with another image", running("initContainers: [{name: a, image: a}, {name: b, image: b}]", ""), "", "deployment/store",
			`[{"op":"move","from":"` + inPod + `/initContainers/0","path":"` + inPod + `/initContainers/1"},{"op":"replace","path":"` + inPod + `/initContainers/0/image","value":"x"}]`},
		{"ports of a Service in another order", `{apiVersion: v1, kind: Service, metadata: {name: store}, spec: {ports: [{name: a, port: 1}, {name: b, port: 2}]}}`, "", "service/store",
			`[{"op":"move","from":"/spec/ports/0","path":"/spec/ports/1"}]`},

		// A second element with the key of an observed one, in a list that may grow.
		{"a variable a second time", running("", pairs), mayGrow("env"), "deployment/store", `[{"op":"add","path":"` + inContainer + `/env/-","value":{"name":"A","value":"x"}}]`},
		{"a variable a second time, in front", running("", pairs), mayGrow("env"), "deployment/store", `[{"op":"add","path":"` + inContainer + `/env/0","value":{"name":"A","value":"x"}}]`},
		{"a variable a second time, by reference", running("", pairs), mayGrow("env"), "deployment/store",
			`[{"op":"add","path":"` + inContainer + `/env/-","value":{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}}]`},

		// Texts and numbers of a field without a type.
		{"a text that became a number", tune(`{account: "012345678901", tag: "0474915"}`), "", "tune/store", `[{"op":"replace","path":"/spec/free/tag","value":474915},
			{"op":"replace","path":"/spec/free/account","value":12345678901}]`},
		{"a number that became a text", tune(`{size: 1000, deep: [{zip: 8989}]}`), "", "tune/store", `[{"op":"replace","path":"/spec/free/size","value":"1000"},
			{"op":"replace","path":"/spec/free/deep/0/zip","value":"8989"}]`},
		{"a quantity in another form", tune(`{size: 1k, part: "0.5"}`), "", "tune/store", `[{"op":"replace","path":"/spec/free/size","value":"1000"},
			{"op":"replace","path":"/spec/free/part","value":"500m"}]`},
		{"a text that became a boolean", tune(`{"on": "true", "none": "null"}`), "", "tune/store", `[{"op":"replace","path":"/spec/free/on","value":true},
			{"op":"remove","path":"/spec/free/none"}]`},
	}
}

// mayGrow returns the schema of [running] that observes three elements of a list of the container, which may get longer.
func mayGrow(list string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: store}, spec: {template: {spec: {containers: [{name: null, %s: [
		{name: null, value: null}, {name: null, value: null}, {name: null, value: null}, {observer_schema_list_min_length: 3, observer_schema_list_max_length: 0}]},
		{observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]}}}}`, list)
}

// tune returns an object of a kind whose field has no type.
func tune(free string) string {
	return "{apiVersion: air.example.com/v1, kind: Tune, metadata: {name: store}, spec: {free: " + free + "}}"
}

// After a repair, the whole object is as before the change of another client.
func TestAChangedObjectIsAsBefore(t *testing.T) {
	defineKind(t, "air.example.com", "Tune", "free: {type: object, x-kubernetes-preserve-unknown-fields: true}")
	namespace := newNamespace(t)
	named := func(i int, text string) string { return strings.ReplaceAll(text, "store", fmt.Sprintf("store-%d", i)) }
	for i, c := range restoredCases() {
		createApplication(t, namespace, named(i, "store"), named(i, c.manifest), named(i, c.schema))
	}
	for i, c := range restoredCases() {
		t.Run(c.name, func(t *testing.T) {
			app, object := named(i, "store"), named(i, c.object)
			eventuallyReconciled(t, namespace, app)
			before := contentOf(t, namespace, object)
			kit.Must(t, change(t, namespace, object, types.JSONPatchType, c.patch))
			kit.Eventually(t, func() string { return cmp.Diff(before, contentOf(t, namespace, object)) })
			eventuallyReconciled(t, namespace, app)
		})
	}
}

// contentOf reads an object, without what each write changes.
func contentOf(t *testing.T, namespace, object string) any {
	t.Helper()
	live := find(t, namespace, object)
	if live == nil {
		t.Fatalf("there is no %s", object)
	}
	fields := live.Object
	delete(fields, "status")
	for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(fields, "metadata", name)
	}
	unstructured.RemoveNestedField(fields, "metadata", "annotations", "deployment.kubernetes.io/revision")
	return fields
}

// An element whose key has left the manifest goes, also from a list that may grow, and those of others stay.
func TestARenamedElementIsRemoved(t *testing.T) {
	const names = ".spec.template.spec.containers[0].env[*].name"
	namespace := newNamespace(t)
	const env = "/spec/template/spec/containers/0/env"
	of := func(names ...string) string {
		return running("", fmt.Sprintf("env: [{name: %s, value: a}, {name: %s, value: b}, {name: %s, value: c}]", names[0], names[1], names[2]))
	}
	createApplication(t, namespace, "nginx", of("A", "B", "C"), mayGrow("env"))
	eventuallyReconciled(t, namespace, "nginx")
	kit.Must(t, change(t, namespace, "deployment/store", types.JSONPatchType, `[{"op":"add","path":"`+env+`/-","value":{"name":"OTHER","value":"1"}}]`))
	awaitCalm(t, namespace)
	respec(t, namespace, "nginx", of("A", "NEW", "C"))
	kit.Eventually(t, func() string { return cmp.Diff("A NEW C OTHER", look(t, namespace, "deployment/store", names)) })
	eventuallyReconciled(t, namespace, "nginx")

	// What another client has changed belongs to it.
	app := hub.App(namespace, "nginx")
	app.Annotate(t, "mode", "suspend")
	eventuallyCondition(t, namespace, "nginx", "Ready", "Unknown", "Suspended")
	kit.Must(t, change(t, namespace, "deployment/store", types.JSONPatchType, `[{"op":"replace","path":"`+env+`/1/value","value":"mine"}]`))
	respec(t, namespace, "nginx", of("A", "B", "C"))
	app.Annotate(t, "mode", "enforce")
	kit.Eventually(t, func() string { return cmp.Diff("A B NEW C OTHER", look(t, namespace, "deployment/store", names)) })
}

// New objects are created before those that left the manifest are deleted. If one cannot be created, none is deleted.
func TestARenamedObjectIsReplaced(t *testing.T) {
	namespace := newNamespace(t)
	of := func(name, selector string) string {
		return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: main, image: "registry.example.org/%[1]s:1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s}
`, name, selector)
	}
	there := func() string {
		var names []string
		for _, resource := range []schema.GroupVersionResource{kit.Deployments, kit.ConfigMaps} {
			list, err := hub.Dynamic.Resource(resource).Namespace(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: application.OwnedByLabel})
			kit.Must(t, err)
			for _, object := range list.Items {
				names = append(names, object.GetName())
			}
		}
		return strings.Join(names, " ")
	}
	createApplication(t, namespace, "nginx", of("first", "first"), "")
	eventuallyReconciled(t, namespace, "nginx")
	before := auditMark(t)
	respec(t, namespace, "nginx", of("second", "second"))
	kit.Eventually(t, func() string { return cmp.Diff("second second", there()) })
	eventuallyReconciled(t, namespace, "nginx")
	created := 0
	for _, r := range before.Requests(t, ofAgent, kit.In(namespace), kit.Request.IsAccepted) {
		switch {
		case r.Verb == "create" && r.Object.Name == "second":
			created++
		case r.Verb == "delete" && r.Object.Name == "first" && created < 2:
			t.Errorf("%s, before both new objects exist", r)
		}
	}

	respec(t, namespace, "nginx", of("third", "wrong"))
	eventuallyCondition(t, namespace, "nginx", "Reconciled", "False", "Invalid")
	hub.App(namespace, "nginx").Says(t, "Reconciled", "until it exists, nothing that left the manifest is deleted (2 objects)")
	if got := there(); got != "second second third" {
		t.Errorf("there are %s", got)
	}
	respec(t, namespace, "nginx", of("third", "third"))
	kit.Eventually(t, func() string { return cmp.Diff("third third", there()) })
	eventuallyReconciled(t, namespace, "nginx")
}

// What an injector added to the agent's write may go, and nothing else may take its place.
func TestOnlyTheInjectedElementIsAccepted(t *testing.T) {
	namespace := newNamespace(t)
	undo := inject(t, namespace)
	createApplication(t, namespace, "nginx", running("", "env: [{name: A, value: a}]"), "")
	eventuallyCondition(t, namespace, "nginx", "Reconciled", "True", "NormalizedByServer")
	const names = ".spec.template.spec.containers[*].name} {.spec.template.spec.containers[*].env[*].name"
	read := func() string { return look(t, namespace, "deployment/store", names) }
	if got := read(); got != "main proxy A MESH" {
		t.Fatalf("the injector made %q", got)
	}
	undo()
	kit.Eventually(t, func() string { // the API server forgets the policy
		err := change(t, namespace, "deployment/store", types.JSONPatchType, `[
			{"op":"remove","path":"/spec/template/spec/containers/1"},{"op":"remove","path":"/spec/template/spec/containers/0/env/1"},
			{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"evil","image":"evil"}},
			{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"LD_PRELOAD","value":"/evil.so"}}]`)
		if err != nil && read() == "main A" {
			return ""
		}
		return cmp.Diff("main A", read())
	})
	eventuallyReconciled(t, namespace, "nginx")
}

// inject adds a container and a variable to each Deployment that is written in a namespace.
func inject(t *testing.T, namespace string) (undo func()) {
	t.Helper()
	undo = hub.Make(t, "", fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [
          Object.spec.template.spec.containers{name: "main", env: [Object.spec.template.spec.containers.env{name: "MESH", value: "on"}]},
          Object.spec.template.spec.containers{name: "proxy", image: "proxy:1"}]}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s}
`, namespace))
	fields, _ := parse(t, running("", "")).(map[string]any)
	probe := &unstructured.Unstructured{Object: fields}
	kit.Eventually(t, func() string { // the API server reads the policy
		made, err := hub.Dynamic.Resource(kit.Deployments).Namespace(namespace).Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		kit.Must(t, err)
		return cmp.Diff("main proxy", jsonPath(t, made, ".spec.template.spec.containers[*].name"))
	})
	return undo
}

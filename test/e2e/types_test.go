package e2e

import (
	"testing"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"
)

// concertKind defines a kind with a list that has a key, and the agent's rights on it.
const concertKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: concerts.stage.example.com}
spec:
  group: stage.example.com
  scope: Namespaced
  names: {kind: Concert, plural: concerts, singular: concert}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, beats: {type: integer}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: krake-agent-concerts
  labels: {krake.dev/aggregate-to-agent: "true"}
rules:
- {apiGroups: [stage.example.com], resources: [concerts], verbs: [get, list, watch, create, patch, delete]}
`

// A list of a custom resource is aligned by the key that the schema states. Another manager inserts an element in
// front, which is no drift. A changed value is repaired in its new place, and so is another order.
func TestListOfACustomResourceIsAlignedByTheStatedKey(t *testing.T) {
	concerts := gvr.GroupVersionResource{Group: "stage.example.com", Version: "v1", Resource: "concerts"}
	hub.Apply(t, concertKind)
	hub.Kubectl(t, "wait", "--for=condition=Established", "crd/concerts.stage.example.com")
	namespace := newNamespace(t)
	createApplication(t, namespace, "nginx", `{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening},
		spec: {parts: [{name: horn, beats: 3}, {name: tuba, beats: 4}]}}`,
		`{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening}, spec: {parts: [
		{name: null, beats: null}, {name: null, beats: null},
		{observer_schema_list_min_length: 2, observer_schema_list_max_length: 0, observer_schema_list_key: name}]}}`)
	eventuallyReconciled(t, namespace, "nginx")
	awaitCalm(t, namespace)
	before := auditMark(t)
	hub.Change(t, concerts, namespace, "opening", `{"spec": {"parts": [
		{"name": "drum", "beats": 1}, {"name": "horn", "beats": 3}, {"name": "tuba", "beats": 4}]}}`)
	awaitCalm(t, namespace)
	if made := repairs(t, before, namespace); len(made) > 0 {
		t.Errorf("another element was repaired: %v", made)
	}
	hub.Change(t, concerts, namespace, "opening", `{"spec": {"parts": [
		{"name": "tuba", "beats": 4}, {"name": "drum", "beats": 1}, {"name": "horn", "beats": 7}]}}`)
	hub.EventuallyField(t, 3, concerts, namespace, "opening", "spec", "parts", 0, "beats")
	hub.EventuallyField(t, "tuba", concerts, namespace, "opening", "spec", "parts", 1, "name")
	checkRepairs(t, eventuallyRepairs(t, before, 1, namespace), "/spec/parts/2/beats", "/spec/parts/0")
}

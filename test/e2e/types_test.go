package e2e

import (
	"fmt"
	"strings"
	"testing"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/test/kit"
)

// concertKind defines a kind with lists of all types, and the agent's rights on it.
var concertKind = kit.Definition("stage.example.com", "Concert", `{type: object, properties: {spec: {type: object, properties: {
      parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name, voice], items: {type: object, required: [name],
        properties: {name: {type: string}, voice: {type: string, default: first}, beats: {type: integer}}}},
      guests: {type: array, x-kubernetes-list-type: set, items: {type: string}},
      encores: {type: array, x-kubernetes-list-type: atomic, items: {type: object, required: [title],
        properties: {title: {type: string}, beats: {type: integer}}}}}}}}`) + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: krake-agent-concerts
  labels: {krake.dev/aggregate-to-agent: "true"}
rules:
- {apiGroups: [stage.example.com], resources: [concerts], verbs: [get, list, watch, create, patch, delete]}
`

var concerts = gvr.GroupVersionResource{Group: "stage.example.com", Version: "v1", Resource: "concerts"}

// defineConcert waits until the API server serves and describes the definition. It returns the path of the description.
func defineConcert(t *testing.T, definition string) string {
	t.Helper()
	generation := func() any {
		return kit.Field(hub.Get(t, kit.Definitions, "", "concerts.stage.example.com"), "metadata", "generation")
	}
	former, before := described(t), generation()
	if hub.Make(t, "", definition); generation() == before {
		return former
	}
	kit.Eventually(t, func() string {
		if now := described(t); now == "" || now == former {
			return "the API server describes " + former
		}
		return ""
	})
	return described(t)
}

// described returns the path of the OpenAPI document with the kind, empty if there is none.
func described(t *testing.T) string {
	t.Helper()
	paths, err := hub.Discovery().OpenAPIV3().Paths()
	kit.Must(t, err)
	if found, ok := paths["apis/stage.example.com/v1"]; ok {
		return found.ServerRelativeURL()
	}
	return ""
}

// A list of a custom resource is aligned by the key that the schema states. Another manager inserts an element in
// front, which is no drift. A changed value is repaired in its new place, and so is another order.
func TestListOfACustomResourceIsAlignedByTheStatedKey(t *testing.T) {
	defineConcert(t, concertKind)
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

// The lists of a custom resource are aligned as its definition says: by keys, with their defaults, or as a set. A
// definition that gets a key later counts from then on.
func TestListsOfACustomResourceAreAlignedByTheirDefinition(t *testing.T) {
	defineConcert(t, concertKind)
	namespace := newNamespace(t)
	createApplication(t, namespace, "nginx", `{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening}, spec: {
		parts: [{name: horn, beats: 3}, {name: horn, voice: second, beats: 4}], guests: [ann, bob], encores: [{title: Coda, beats: 2}, {title: Finale, beats: 3}]}}`,
		`{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening}, spec: {
		parts: [{name: null, beats: null}, {name: null, voice: null, beats: null}, {observer_schema_list_min_length: 2, observer_schema_list_max_length: 0}],
		guests: [null, null, {observer_schema_list_min_length: 2, observer_schema_list_max_length: 0}],
		encores: [{title: null, beats: null}, {title: null, beats: null}, {observer_schema_list_min_length: 2, observer_schema_list_max_length: 0}]}}`)
	eventuallyReconciled(t, namespace, "nginx")
	awaitCalm(t, namespace)

	before := auditMark(t)
	hub.Change(t, concerts, namespace, "opening", `{"spec": {"guests": ["eve", "bob", "ann"], "parts": [
		{"name": "drum", "beats": 1}, {"name": "horn", "voice": "first", "beats": 3}, {"name": "horn", "voice": "second", "beats": 4}]}}`)
	awaitCalm(t, namespace)
	if made := repairs(t, before, namespace); len(made) > 0 {
		t.Errorf("other elements were repaired: %v", made)
	}

	hub.Change(t, concerts, namespace, "opening", `{"spec": {"parts": [
		{"name": "drum", "beats": 1}, {"name": "horn", "voice": "first", "beats": 7}, {"name": "horn", "voice": "second", "beats": 4}]}}`)
	hub.EventuallyField(t, 3, concerts, namespace, "opening", "spec", "parts", 1, "beats")
	checkRepairs(t, eventuallyRepairs(t, before, 1, namespace), "/spec/parts/1/beats")

	hub.Change(t, concerts, namespace, "opening", `{"spec": {"guests": ["eve", "bob"]}}`)
	kit.Eventually(t, func() string {
		guests := fmt.Sprint(kit.Field(hub.Get(t, concerts, namespace, "opening"), "spec", "guests"))
		if !strings.Contains(guests, "ann") || !strings.Contains(guests, "eve") {
			return "the guests are " + guests
		}
		return ""
	})

	awaitCalm(t, namespace)
	redefined := auditMark(t)
	path := defineConcert(t, strings.Replace(concertKind, "x-kubernetes-list-type: atomic", "x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [title]", 1))
	kit.Eventually(t, func() string {
		if read := redefined.Requests(t, ofAgent, func(r kit.Request) bool { return strings.HasPrefix(r.URI, path) }); len(read) == 0 {
			return "the agent has not read " + path
		}
		return ""
	})
	hub.Change(t, concerts, namespace, "opening", `{"spec": {"encores": [
		{"title": "Extra", "beats": 9}, {"title": "Coda", "beats": 7}, {"title": "Finale", "beats": 3}]}}`)
	hub.EventuallyField(t, 2, concerts, namespace, "opening", "spec", "encores", 1, "beats")
	if kept := kit.Field(hub.Get(t, concerts, namespace, "opening"), "spec", "encores", 0, "beats"); fmt.Sprint(kept) != "9" {
		t.Errorf("the element in front has %v beats, want 9", kept)
	}
}

// A stated key may have a field that only the definition of the kind gives to an element. The user is warned.
func TestStatedKeyWithADefault(t *testing.T) {
	defineConcert(t, concertKind)
	namespace := newNamespace(t)
	application := kit.Application(namespace, "nginx", `{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening},
		spec: {parts: [{name: horn, beats: 3}, {name: horn, voice: second, beats: 4}]}}`,
		kit.Schema(`{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening}, spec: {parts: [
		{name: null, beats: null}, {name: null, voice: null, beats: null},
		{observer_schema_list_min_length: 2, observer_schema_list_max_length: 0, observer_schema_list_key: [name, voice]}]}}`))
	if said := hub.KubectlWith(t, kit.YAML(t, application), "create", "-f", "-"); !strings.Contains(said, "has no voice") {
		t.Errorf("no warning: %s", said)
	}
	eventuallyReconciled(t, namespace, "nginx")
	hub.Change(t, concerts, namespace, "opening", `{"spec": {"parts": [
		{"name": "drum", "beats": 1}, {"name": "horn", "voice": "second", "beats": 4}, {"name": "horn", "voice": "first", "beats": 7}]}}`)
	hub.EventuallyField(t, "[map[beats:1 name:drum voice:first] map[beats:3 name:horn voice:first] map[beats:4 name:horn voice:second]]",
		concerts, namespace, "opening", "spec", "parts")
}

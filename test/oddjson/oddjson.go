// Package oddjson has texts that are JSON, or nearly JSON, for the tests of decoders.
//
//	for _, text := range oddjson.Oddities() {
//		f.Add([]byte(text))
//	}
package oddjson

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Oddities returns texts that readers of JSON treat differently.
func Oddities() []string {
	return []string{
		`{}`, `{"a": 1, "a": {"b": 2}, "a": [3]}`, `{"A": 1, "a": 2}`, `{"\u0061": 1, "a\u00e9\ud83d\ude00\ud800": "\n\/"}`,
		`{"a": [0, -0, 1.0, 1e3, 1E-3, 9223372036854775807, 9223372036854775808, -9223372036854775809, 1e400, 0.1, 12345678901234567890.5]}`,
		`{"a": null, "b": true, "c": false, "d": {}, "e": [], "f": ""}`, " {\t\"a\" :\r\n[ 1 , 2 ] } ", "{\"a\": \"\xff\"}", "{\"a\": \"\x01\"}",
		`{"a": 01}`, `{"a": 1.}`, `{"a": .5}`, `{"a": +1}`, `{"a": 1e}`, `{"a": nul}`, `{"a": tru}`, `{"a": "\x"}`, `{"a": "\u12g4"}`, `{"a"}`, `{"a":}`, `{"a": 1,}`, `{,}`,
		`{"a": [1,]}`, `{"a": [1 2]}`, `{"a": 1 "b": 2}`, `{"a": 1}}`, `{"a": 1} x`, `[1]`, `null`, `1`, `"a"`, ``, `{`, `{"a": "`, `{"a": "\`, `{"a": -}`, `{1: 2}`,
		`{"metadata": {"name": "x", "managedFields": [1], "managedFields": {"a": nonsense}}}`,
		`{"metadata": null, "metadata": {"name": "x"}, "spec": 1, "spec": {"replicas": 2}}`,
		`{"metadata": {"name": "x"}, "data": {"a": 1}, "data": null}`, `{"metadata": {"name": "x"}, "data": null, "data": {"a": "1"}}`,
		`{"metadata": "x", "status": [1], "spec": "y"}`, `{"items": [{"a": 1}], "kind": "L"}`,
		strings.Repeat(`{"a":[`, 600) + strings.Repeat(`]}`, 600),
	}
}

// Damage changes a text at up to three random places.
func Damage(random *rand.Rand, of string) []byte {
	const alphabet = `{}[]",:\u0 1e.-+truefalsn"managedFields"` + "\x00\x1f\xff\n"
	text := []byte(of)
	for range 1 + random.IntN(3) {
		at := random.IntN(len(text) + 1)
		switch random.IntN(4) {
		case 0:
			text = slices.Insert(text, at, alphabet[random.IntN(len(alphabet))])
		case 1:
			text = slices.Delete(text, at, min(len(text), at+1+random.IntN(8)))
		case 2:
			from := random.IntN(len(text) + 1)
			text = slices.Insert(text, at, slices.Clone(text[from:min(len(text), from+random.IntN(60))])...)
		default:
			if at < len(text) {
				text[at] = alphabet[random.IntN(len(alphabet))]
			}
		}
	}
	return text
}

// IsTooBig reports whether the library refuses a text because a number exceeds Go's types: the text is
// still JSON.
func IsTooBig(err error) bool { return strings.Contains(err.Error(), "cannot unmarshal number") }

// DeploymentSpec is the field spec of [Deployment].
const DeploymentSpec = `"spec": {"replicas": 2, "revisionHistoryLimit": 3, "progressDeadlineSeconds": 600, "selector": {"matchLabels": {"app": "web"}},
	"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
	"template": {"metadata": {"creationTimestamp": null, "labels": {"app": "web"}}, "spec": {"terminationGracePeriodSeconds": 10, "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
	"schedulerName": "default-scheduler", "securityContext": {}, "containers": [{"name": "web", "image": "registry.example.com/shop/web:1.27", "imagePullPolicy": "IfNotPresent",
	"args": ["--listen", ":8080"], "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}], "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
	"resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
	"env": [{"name": "A", "value": "one"}, {"name": "B", "value": "two"}, {"name": "C", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
	"readinessProbe": {"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"}, "periodSeconds": 5, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3}}]}}}`

// Deployment returns a Deployment as an API server sends it: half of it is
// managedFields.
func Deployment(version int) string {
	fields := strings.Repeat(`"f:image": {}, "f:resources": {".": {}, "f:limits": {".": {}, "f:memory": {}}, "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}}}, "k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}, `, 6)
	return fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "demo", "uid": "8c1f3e0a-1111-2222-3333-444455556666", "resourceVersion": "%d", "generation": 3,
	"creationTimestamp": "2026-01-02T15:04:05Z", "labels": {"app": "web", "example.com/owned": "yes"}, "annotations": {"deployment.kubernetes.io/revision": "1"},
	"managedFields": [{"manager": "krake-agent", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-02T15:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {%s"f:x": {}}},
	{"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "fieldsV1": {%s"f:y": {}}}]}, %s,
	"status": {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2, "conditions": [
	{"type": "Available", "status": "True", "lastUpdateTime": "2026-01-02T15:04:05Z", "lastTransitionTime": "2026-01-02T15:04:05Z", "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability."},
	{"type": "Progressing", "status": "True", "lastUpdateTime": "2026-01-02T15:04:05Z", "lastTransitionTime": "2026-01-02T15:04:05Z", "reason": "NewReplicaSetAvailable", "message": "ReplicaSet has successfully progressed."}]}}`,
		version, fields, fields, DeploymentSpec)
}

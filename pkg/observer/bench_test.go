package observer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// BenchmarkEvent measures an event that changes nothing observed, from the bytes of its object to the stored
// record, beside decoding the object. The summary is not among it.
func BenchmarkEvent(b *testing.B) {
	text := []byte(deployment(7))
	o := New(b.Context(), Options{Now: time.Now, Logger: logr.Discard()})
	target := targetOf(manifest.Ref{
		ID:       manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"},
		Resource: configMaps,
	}, object(b, "{"+deploymentSpec+"}"))
	o.registry.setViewsLocked(keyOf(target), []*view{{owner: web, target: target}})
	for name, look := range map[string]func(*unstructured.Unstructured){
		"decode":         func(*unstructured.Unstructured) {},
		"decode,compare": func(live *unstructured.Unstructured) { o.informers.source.transform(configMaps, live) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var live unstructured.Unstructured
				if err := live.UnmarshalJSON(text); err != nil {
					b.Fatal(err)
				}
				look(&live)
			}
		})
	}
}

// deploymentSpec is the field spec of deployment.
const deploymentSpec = `"spec": {"replicas": 2, "revisionHistoryLimit": 3, "progressDeadlineSeconds": 600, "selector": {"matchLabels": {"app": "web"}},
	"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
	"template": {"metadata": {"creationTimestamp": null, "labels": {"app": "web"}}, "spec": {"terminationGracePeriodSeconds": 10, "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
	"schedulerName": "default-scheduler", "securityContext": {}, "containers": [{"name": "web", "image": "registry.example.com/shop/web:1.27", "imagePullPolicy": "IfNotPresent",
	"args": ["--listen", ":8080"], "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}], "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
	"resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
	"env": [{"name": "A", "value": "one"}, {"name": "B", "value": "two"}, {"name": "C", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
	"readinessProbe": {"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"}, "periodSeconds": 5, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3}}]}}}`

// deployment returns a Deployment as an API server sends it: half of it is
// managedFields.
func deployment(version int) string {
	fields := strings.Repeat(`"f:image": {}, "f:resources": {".": {}, "f:limits": {".": {}, "f:memory": {}}, "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}}}, "k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}, `, 6)
	return fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "demo", "uid": "8c1f3e0a-1111-2222-3333-444455556666", "resourceVersion": "%d", "generation": 3,
	"creationTimestamp": "2026-01-02T15:04:05Z", "labels": {"app": "web", "example.com/owned": "yes"}, "annotations": {"deployment.kubernetes.io/revision": "1"},
	"managedFields": [{"manager": "krake-agent", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-02T15:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {%s"f:x": {}}},
	{"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "fieldsV1": {%s"f:y": {}}}]}, %s,
	"status": {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2, "conditions": [
	{"type": "Available", "status": "True", "lastUpdateTime": "2026-01-02T15:04:05Z", "lastTransitionTime": "2026-01-02T15:04:05Z", "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability."},
	{"type": "Progressing", "status": "True", "lastUpdateTime": "2026-01-02T15:04:05Z", "lastTransitionTime": "2026-01-02T15:04:05Z", "reason": "NewReplicaSetAvailable", "message": "ReplicaSet has successfully progressed."}]}}`,
		version, fields, fields, deploymentSpec)
}

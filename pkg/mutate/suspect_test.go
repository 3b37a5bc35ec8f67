package mutate_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/mutate"
)

func places(refusals field.ErrorList) []any {
	paths := make([]any, 0, len(refusals))
	for _, refusal := range refusals {
		paths = append(paths, refusal.Field)
	}
	return paths
}

// What is let through with a word about it.
func TestSuspicious(t *testing.T) {
	const (
		web      = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2}}\n---\n"
		scaler   = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}\n---\n"
		reverted = "data.spec.manifest[0].spec.replicas: it is observed, so that what the HorizontalPodAutoscaler sets is reverted: leave it out of the manifest, or of the observer schema"
	)
	tests := []struct {
		why, manifest, schema string
		want                  []string
	}{
		{"nothing to say", web, "", nil},
		{"replicas that an autoscaler sets", web + scaler, "", []string{reverted}},
		{"not if they are not observed", web + scaler, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {paused: null}}", nil},
		{"by an observer schema that the manifest does not ask for", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}\n---\n" + scaler,
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: null}}", []string{reverted}},
		{"as a part of a whole", web + scaler, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: null}", []string{reverted}},
		{"an autoscaler of something else", web + "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 3, scaleTargetRef: {kind: StatefulSet, name: web}}}", "", nil},
		{"an autoscaler that is no built-in one, and has a default", web + "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: a}, spec: {scaleTargetRef: {name: web}}}", "",
			[]string{"data.spec.manifest[0].spec.replicas: it is observed, so that what the ScaledObject sets is reverted: leave it out of the manifest, or of the observer schema"}},
		{"a status", "{apiVersion: v1, kind: Song, metadata: {name: a}, status: {a: 1}}", "",
			[]string{"data.spec.manifest[0].status: it is for the server to write, and not observed"}},
		{"an empty status, as generators write it", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, creationTimestamp: null}, status: {}}", "", nil},
		{"a privileged Pod", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {hostNetwork: true, containers: [{name: a, securityContext: {privileged: true}}]}}}}", "",
			[]string{"data.spec.manifest[0]: a namespace with Pod Security baseline will refuse its Pods: host namespaces, privileged"}},
		{"one in a CronJob", "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {spec: {volumes: [{name: a, hostPath: {path: /}}]}}}}}}", "",
			[]string{"data.spec.manifest[0]: a namespace with Pod Security baseline will refuse its Pods: hostPath volumes"}},
		{"one by itself", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {hostPID: true, containers: []}}", "",
			[]string{"data.spec.manifest[0]: a namespace with Pod Security baseline will refuse its Pods: host namespaces"}},
		{"a field that the server assigns", "{apiVersion: v1, kind: Service, metadata: {name: a}}", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: null}}",
			[]string{"data.spec.manifest[0].spec.clusterIP: the server assigns it: what it assigns first is kept, and is another one on another cluster"}},
		{"not if the manifest says it", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None}}", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: null}}", nil},
		{"a field with a typing error", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replcas: 2}}", "",
			[]string{`data.spec.manifest[0]: unknown field "spec.replcas"`}},
		{"a text that looks like a number of a million digits, which nobody tries to read",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '1e999999', b: '123456789012345678901234567890123456789'}}", "", nil},
		{"not of a type that nobody knows", "{apiVersion: v1, kind: Song, metadata: {name: a}, spec: {replcas: 2}}", "", nil},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			cm := submitted()
			cm.Data = map[string]string{"spec.manifest": test.manifest}
			if test.schema != "" {
				cm.Data["spec.observer_schema"] = test.schema
			}
			prepared := mutate.PrepareForCreate(cm)
			equal(t, "refusals", []any{}, messages(prepared.Refusals))
			equal(t, "warnings", test.want, prepared.Warnings)
		})
	}
}

// What no API server could read is refused, with the place and without the value.
func TestUnreadable(t *testing.T) {
	tests := []struct{ why, manifest, want string }{
		{"a text where a number belongs", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: hunter2}}",
			"data.spec.manifest[0].spec.replicas: Invalid value: its type has to be int32, and is string"},
		{"a truth where a text belongs, as YAML 1.1 reads y", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {m: y}}",
			"data.spec.manifest[0].data: Invalid value: its type has to be string, and is bool"},
		{"a quantity that is none", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, resources: {limits: {cpu: hunter2}}}]}}",
			"data.spec.manifest[0]: Invalid value: a value has not the form of its type: a quantity, a time or the like"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			cm := submitted()
			cm.Data = map[string]string{"spec.manifest": test.manifest}
			equal(t, "refusals", []any{test.want}, messages(mutate.PrepareForCreate(cm).Refusals))
		})
	}
}

package mutate_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

func places(refusals field.ErrorList) []any {
	paths := make([]any, 0, len(refusals))
	for _, refusal := range refusals {
		paths = append(paths, refusal.Field)
	}
	return paths
}

// Inputs that are accepted with a warning.
func TestSuspicious(t *testing.T) {
	const (
		web      = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2}}\n---\n"
		scaler   = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}\n---\n"
		reverted = "data.spec.manifest[0].spec.replicas: it is observed, so the agent reverts the value that the HorizontalPodAutoscaler sets: leave it out of the manifest, or of the observer schema"
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
		{"an autoscaler of something else", web + "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 3, scaleTargetRef: {kind: StatefulSet, name: web}}}", "", nil},
		{"an autoscaler that is no built-in one, and has a default", web + "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: a}, spec: {scaleTargetRef: {name: web}}}", "",
			[]string{"data.spec.manifest[0].spec.replicas: it is observed, so the agent reverts the value that the ScaledObject sets: leave it out of the manifest, or of the observer schema"}},
		{"a status", "{apiVersion: v1, kind: Song, metadata: {name: a}, status: {a: 1}}", "",
			[]string{"data.spec.manifest[0].status: only the server writes it, and it is not observed"}},
		{"a privileged Pod", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {hostNetwork: true, containers: [{name: a, securityContext: {privileged: true}}]}}}}", "",
			[]string{"data.spec.manifest[0]: a namespace with Pod Security baseline will refuse its Pods: host namespaces, privileged"}},
		{"a field that the server assigns", "{apiVersion: v1, kind: Service, metadata: {name: a}}", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: null}}",
			[]string{"data.spec.manifest[0].spec.clusterIP: the server assigns it: the agent keeps the first value, which differs on each cluster"}},
		{"not if the manifest says it", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None}}", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: null}}", nil},
		{"a field with a typing error", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replcas: 2}}", "",
			[]string{`data.spec.manifest[0]: unknown field "spec.replcas"`}},
		{"a Job that its TTL deletes", "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Never}}}}", "",
			[]string{"data.spec.manifest[0].spec.ttlSecondsAfterFinished: the cluster deletes the Job when it has finished: it then counts as done, and runs again only when its manifest changes"}},
		{"a Job that stays, and the template of one", "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never}}}}\n---\n" +
			"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: '* * * * *', jobTemplate: {spec: {ttlSecondsAfterFinished: 5}}}}", "", nil},
		{"a Pod that ends", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {restartPolicy: Never, containers: [{name: a}]}}", "",
			[]string{"data.spec.manifest[0].spec.restartPolicy: nothing starts this Pod again when it ends or its node goes, and it runs again if it is deleted: a Job or a Deployment does better"}},
		{"a text that looks like a number of a million digits, which nobody tries to read",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '1e999999', b: '123456789012345678901234567890123456789'}}", "", nil},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			cm := submitted()
			cm.Data = map[string]string{"spec.manifest": test.manifest}
			if test.schema != "" {
				cm.Data["spec.observer_schema"] = test.schema
			}
			prepared := mutate.PrepareForCreate(t.Context().Err, cm)
			check.Equal(t, "refusals", []any{}, messages(prepared.Refusals))
			check.Equal(t, "warnings", test.want, prepared.Warnings)
		})
	}
}

// An input that no API server could decode is refused, with its place and without its value.
func TestUnreadable(t *testing.T) {
	tests := []struct{ why, manifest, want string }{
		{"a text where a number belongs", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: hunter2}}",
			"data.spec.manifest[0].spec.replicas: Invalid value: its type has to be int32, and is string"},
		{"a truth where a text belongs, as YAML 1.1 reads y", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {m: y}}",
			"data.spec.manifest[0].data[m]: Invalid value: its type has to be string, and is bool"},
		{"a number as an annotation", "{apiVersion: v1, kind: Service, metadata: {name: a, annotations: {build: 7, team: x}}, spec: {ports: [{port: 80}]}}",
			"data.spec.manifest[0].metadata.annotations[build]: Invalid value: its type has to be string, and is number"},
		{"each value of a map that is no text", "{apiVersion: example.org/v1, kind: Song, metadata: {name: a, annotations: {build: 7, enabled: true, a.b/c: {d: e}, team: x, none: null}}}",
			"data.spec.manifest[0].metadata.annotations[a.b/c]: Invalid value: its type has to be string, and is object\n" +
				"data.spec.manifest[0].metadata.annotations[build]: Invalid value: its type has to be string, and is number\n" +
				"data.spec.manifest[0].metadata.annotations[enabled]: Invalid value: its type has to be string, and is bool"},
		{"a label of a template", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {labels: {app: a, canary: true}}}}}",
			"data.spec.manifest[0].spec.template.metadata.labels[canary]: Invalid value: its type has to be string, and is bool"},
		{"a list as a label of a custom kind", "{apiVersion: example.org/v1, kind: Song, metadata: {name: a, labels: {parts: [hunter2]}}}",
			"data.spec.manifest[0].metadata.labels[parts]: Invalid value: its type has to be string, and is array"},
		{"annotations that are a list", "{apiVersion: example.org/v1, kind: Song, metadata: {name: a, annotations: [hunter2]}}",
			"data.spec.manifest[0].metadata.annotations: Invalid value: its type has to be map[string]string, and is array"},
		{"a quantity that is none", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, resources: {limits: {cpu: hunter2}}}]}}",
			"data.spec.manifest[0]: Invalid value: a value does not have the form of its type, such as a quantity or a time"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			cm := submitted()
			cm.Data = map[string]string{"spec.manifest": test.manifest}
			check.Equal(t, "refusals", test.want, strings.Join(texts(mutate.PrepareForCreate(t.Context().Err, cm).Refusals), "\n"))
		})
	}
}

// A hold without effect, or for a long time, is accepted with a warning. Only the request that
// sets it gets the warning.
func TestSuspectHold(t *testing.T) {
	const (
		hour, mode, until = "2026-01-02T13:00:00Z", "krake.dev/mode", "krake.dev/hold-until"

		at     = "metadata.annotations[krake.dev/hold-until]: "
		past   = at + "this time is past, so nothing is held: set a later one, or leave it out"
		far    = at + "it is more than 7 days away, and no drift is reverted until then: to stop repairs permanently, set krake.dev/mode: observe"
		nobody = at + "mode suspend reverts nothing, so a hold has no effect: leave one of the two out"
	)
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	type annotations = map[string]string
	tests := []struct {
		why         string
		stored, set annotations
		want        []string
	}{
		{"no hold", nil, annotations{mode: "suspend"}, nil},
		{"an hour", nil, annotations{until: hour}, nil},
		{"now, which is no time at all", nil, annotations{until: "2026-01-02T12:00:00Z"}, []string{past}},
		{"in the past", nil, annotations{until: "2026-01-02T11:59:59Z"}, []string{past}},
		{"just a week", nil, annotations{until: "2026-01-09T12:00:00Z"}, nil},
		{"more than a week", nil, annotations{until: "2026-01-09T12:00:01Z"}, []string{far}},
		{"of what is suspended", nil, annotations{until: hour, mode: "suspend"}, []string{nobody}},
		{"a value that is refused", nil, annotations{until: "4h"}, nil},
		{"one that is stored, long after", annotations{until: "2025-01-01T00:00:00Z"}, annotations{until: "2025-01-01T00:00:00Z"}, nil},
		{"one that is moved, and still past", annotations{until: "2025-01-01T00:00:00Z"}, annotations{until: "2026-01-01T00:00:00Z"}, []string{past}},
		{"suspended, while it is held", annotations{until: hour}, annotations{until: hour, mode: "suspend"}, []string{nobody}},
		{"taken away", annotations{until: hour}, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			cm, was := submitted(), &corev1.ConfigMap{}
			if test.stored != nil {
				was = submitted()
				maps.Copy(was.Annotations, test.stored)
			}
			maps.Copy(cm.Annotations, test.set)
			check.Equal(t, "warnings", test.want, mutate.SuspectHold(cm, was, now))
		})
	}
	t.Run("what a plain ConfigMap had counts for nothing", func(t *testing.T) {
		cm, plain := submitted(), submitted()
		cm.Annotations[until] = "2025-01-01T00:00:00Z"
		plain.Annotations = map[string]string{until: "2025-01-01T00:00:00Z"}
		check.Equal(t, "warnings", []string{past}, mutate.SuspectHold(cm, plain, now))
	})
}

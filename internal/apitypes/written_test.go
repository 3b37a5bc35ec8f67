package apitypes_test

import (
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

type object = map[string]any

func decode(t *testing.T, yaml string) object {
	t.Helper()
	documents, err := manifest.Decode([]byte(yaml))
	check.Must(t, err)
	return documents[0].(object)
}

// The values that a real API server returned for the sent ones: for each kind the value of one
// field, or none for a dropped field.
func TestWritten(t *testing.T) {
	cases := []struct {
		why, manifest string
		want          any
	}{
		{"quantities", `{apiVersion: v1, kind: ResourceQuota, spec: {hard: {a: 1000m, b: 0.1, c: 1024Mi, d: 1e9, e: "1.50", f: "010", g: 4}}}`,
			object{"hard": object{"a": "1", "b": "100m", "c": "1Gi", "d": "1G", "e": "1500m", "f": "010", "g": "4"}}},
		{"a text that looks like one", `{apiVersion: v1, kind: ConfigMap, spec: null, data: {a: "1000m", b: "1.10"}}`, nil},
		{"int or string, each as it is", `{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 25%, maxUnavailable: 1}}`,
			object{"minAvailable": "25%", "maxUnavailable": int64(1)}},
		{"zeros that nobody would see, and pointers that tell a zero from nothing",
			`{apiVersion: apps/v1, kind: ReplicaSet, spec: {minReadySeconds: 0, replicas: 0, selector: {}, template: {spec: {containers: [], hostNetwork: false, securityContext: {runAsNonRoot: false}}}}}`,
			object{"replicas": int64(0), "selector": object{}, "template": object{"metadata": object{}, "spec": object{"containers": []any{}, "securityContext": object{"runAsNonRoot": false}}}}},
		{"empty values", `{apiVersion: v1, kind: Pod, spec: {nodeSelector: {}, tolerations: [], containers: [{name: a, command: [], env: [{name: A, value: ""}], resources: {}}], securityContext: {}}}`,
			object{"containers": []any{object{"name": "a", "env": []any{object{"name": "A"}}, "resources": object{}}}, "securityContext": object{}}},
		{"fields that a newer server may know, but no zeros", `{apiVersion: v1, kind: Service, spec: {clusterIP: None, ports: [{port: 79}, {port: 80, added: {a: 1, b: 0}}], added: [1], zero: 0, empty: {a: {}, b: []}}}`,
			object{"clusterIP": "None", "ports": []any{object{"port": int64(79), "targetPort": int64(0)}, object{"port": int64(80), "targetPort": int64(0), "added": object{"a": int64(1), "b": int64(0)}}}, "added": []any{int64(1)}}},
		{"a time in another zone", `{apiVersion: coordination.k8s.io/v1, kind: Lease, spec: {holderIdentity: a, acquireTime: "2026-01-02T16:00:00.000000+01:00"}}`,
			object{"holderIdentity": "a", "acquireTime": "2026-01-02T15:00:00.000000Z"}},
		{"a definition of a custom resource", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, scope: Namespaced, preserveUnknownFields: false, names: {kind: K, plural: ks, shortNames: []}, versions: []}}`,
			object{"group": "g", "scope": "Namespaced", "names": object{"kind": "K", "plural": "ks"}, "versions": []any{}}},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			written, err := apitypes.Written(decode(t, c.manifest))
			check.Must(t, err)
			check.Equal(t, "what is written", c.want, written["spec"])
		})
	}
}

// Written does not share its result with the caller's value.
func TestWrittenIsOwn(t *testing.T) {
	manifest := decode(t, "{apiVersion: v1, kind: Service, spec: {added: {a: 1}}}")
	written, err := apitypes.Written(manifest)
	check.Must(t, err)
	written["spec"].(object)["added"].(object)["a"] = "scribbled"
	check.Equal(t, "the manifest afterwards", any(decode(t, "{added: {a: 1}}")), manifest["spec"])
}

// A number for which a server would compute a million digits is not parsed.
func TestLongNumbers(t *testing.T) {
	for text, refused := range map[string]bool{
		"1e999999": true, "1E+999999": true, "0.1e-100": true, strings.Repeat("1", 100): true, strings.Repeat("1", 100) + "Mi": true,
		"1e9": false, "1E": false, "100Mi": false, "1e99": false, "": false, "e999": false, "1e9x": false, "1eggs": false,
		strings.Repeat("1", 100) + " and a text": false,
	} {
		quota := object{"apiVersion": "v1", "kind": "ConfigMap", "data": object{"x": text}}
		_, err := apitypes.Written(quota)
		check.Equal(t, text+" is refused", refused, err != nil)
	}
}

func TestNotWritten(t *testing.T) {
	for why, text := range map[string]string{
		"a kind that is not built in": "{apiVersion: music.example.com/v1, kind: Song}",
		"a version that is no more":   "{apiVersion: extensions/v1beta1, kind: Nothing}",
		"a value of another type":     "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: many}}",
		"no kind":                     "{apiVersion: v1}",
		"a long number in a list":     `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}, {name: b, resources: {limits: {cpu: "1e999999"}}}]}}`,
	} {
		t.Run(why, func(t *testing.T) {
			_, err := apitypes.Written(decode(t, text))
			check.Equal(t, "it is refused", true, err != nil)
		})
	}
}

// The keys of a list are those that the API declares, for built-in types and others.
func TestKeys(t *testing.T) {
	cases := []struct {
		why, apiVersion, kind string
		path                  []string
		want                  []schema.Key
	}{
		{"containers", "apps/v1", "Deployment", []string{"spec", "template", "spec", "containers"}, []schema.Key{{Name: "name"}}},
		{"ports of a container, of TCP unless they say otherwise", "v1", "Pod", []string{"spec", "containers", "*", "ports"},
			[]schema.Key{{Name: "containerPort"}, {Name: "protocol", Default: "TCP"}}},
		{"ports of a Service", "v1", "Service", []string{"spec", "ports"}, []schema.Key{{Name: "port"}, {Name: "protocol", Default: "TCP"}}},
		{"arguments have an order", "v1", "Pod", []string{"spec", "containers", "*", "args"}, nil},
		{"finalizers are a set, without keys", "v1", "Pod", []string{"metadata", "finalizers"}, []schema.Key{}},
		{"no list", "v1", "Pod", []string{"spec"}, nil},
		{"an unknown field", "v1", "Pod", []string{"spec", "nobody"}, nil},
		{"a value of a map", "v1", "ConfigMap", []string{"data", "anything"}, nil},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			place := apitypes.BuiltIn().Of(manifest.ID{APIVersion: c.apiVersion, Kind: c.kind})
			for _, name := range c.path {
				if name == "*" {
					place = place.Element()
				} else {
					place = place.Field(name)
				}
			}
			check.Equal(t, "keys", c.want, place.Keys())
		})
	}
	check.Equal[any](t, "type of a Song", nil, apitypes.BuiltIn().Of(manifest.ID{APIVersion: "music.example.com/v1", Kind: "Song"}))
}

func TestRefine(t *testing.T) {
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {minReadySeconds: 0, template: {spec: {containers: [
		{name: web, image: a, resources: {limits: {cpu: 0.5}}}, {name: log, image: b}]}}}}`
	cases := []struct {
		why, desired, live string
		want               []string // the paths of drift
	}{
		{"what the server writes otherwise, and another order", deployment,
			`{spec: {template: {spec: {containers: [{name: log, image: b}, {name: web, image: a, resources: {limits: {cpu: 500m}}}]}}}}`, []string{"spec.template.spec.containers"}},
		{"the ports of a container, in another order", `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, ports: [{containerPort: 1}, {containerPort: 2}]}]}}`,
			`{spec: {containers: [{name: web, ports: [{containerPort: 2, protocol: TCP}, {containerPort: 1, protocol: TCP}]}]}}`, []string{"spec.containers[0].ports"}},
		{"a change is one", deployment,
			`{spec: {minReadySeconds: 1, template: {spec: {containers: [{name: log, image: x}, {name: web, image: a, resources: {limits: {cpu: 501m}}}]}}}}`,
			[]string{"spec.minReadySeconds", "spec.template.spec.containers[1].resources.limits.cpu", "spec.template.spec.containers[0].image", "spec.template.spec.containers"}},
		{"of a type that is not built in, as it is", `{apiVersion: music.example.com/v1, kind: Song, metadata: {name: web}, spec: {cpu: 0.5, version: "1.10", muted: false}}`,
			`{spec: {cpu: 500m, version: "1.1"}}`, []string{"spec.cpu", "spec.muted", "spec.version"}},
		{"of a built-in type whose shape the object has not, as it is", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: many, minReadySeconds: "4"}}`,
			`{spec: {replicas: many, minReadySeconds: 4}}`, []string{"spec.minReadySeconds"}},
		{"a port whose protocol is nothing, or what nothing means", `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80, protocol: ""}, {port: 81}]}}`,
			`{spec: {ports: [{port: 81, protocol: TCP}, {port: 80, protocol: TCP}]}}`, []string{"spec.ports[1].protocol", "spec.ports"}},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			desired := decode(t, c.desired)
			observed, err := schema.Default(desired)
			check.Must(t, err)
			var paths []string
			for _, difference := range apitypes.BuiltIn().Refine(observed, desired).Compare(desired, decode(t, c.live)) {
				paths = append(paths, difference.Path.String())
			}
			check.Equal(t, "paths of drift", c.want, paths)
		})
	}
}

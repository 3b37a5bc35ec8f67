package blame

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

const ourselves = "ourselves"

// path returns a path of fields and indices.
func path(steps ...any) schema.Path {
	var p schema.Path
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			p = append(p, schema.Step{Field: step, Index: -1})
		case int:
			p = append(p, schema.Step{Index: step})
		}
	}
	return p
}

func TestTheLastOtherManagerOfAFieldIsBlamed(t *testing.T) {
	const spec = `
spec:
  replicas: 3
  template: {spec: {containers: [
    {name: sidecar, image: x},
    {name: web, image: y, args: [a, b], ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]}]}}
  shards: [{id: 1048576, weight: 2}, {id: 3000000, weight: 2}]
metadata:
  labels: {team: theirs, app: web}
  finalizers: [example.com/a, example.com/b]
`
	container := []any{"spec", "template", "spec", "containers", 1}
	cases := []struct {
		name    string
		managed string // managedFields
		paths   []schema.Path
		want    string
	}{
		{"nobody is known", ``, []schema.Path{path("spec", "replicas")}, ""},
		{"who owns the field", `
- {manager: scaler, operation: Update, time: "2026-01-02T15:04:05Z", fieldsV1: {"f:spec": {"f:replicas": {}}}}
- {manager: labeler, operation: Update, time: "2026-01-02T16:00:00Z", fieldsV1: {"f:metadata": {"f:labels": {"f:team": {}}}}}
`, []schema.Path{path("spec", "replicas")}, "scaler (Update at 2026-01-02T15:04:05Z)"},
		{"of several owners, the last", `
- {manager: early, operation: Apply, time: "2026-01-02T15:00:00Z", fieldsV1: {"f:spec": {"f:replicas": {}}}}
- {manager: late, operation: Apply, time: "2026-01-02T16:00:00Z", fieldsV1: {"f:spec": {"f:replicas": {}}}}
- {manager: middle, operation: Apply, time: "2026-01-02T15:30:00Z", fieldsV1: {"f:spec": {"f:replicas": {}}}}
`, []schema.Path{path("spec", "replicas")}, "late (Apply at 2026-01-02T16:00:00Z)"},
		{"of several fields, the last owner of any", `
- {manager: scaler, operation: Update, time: "2026-01-02T15:00:00Z", fieldsV1: {"f:spec": {"f:replicas": {}}}}
- {manager: labeler, operation: Update, time: "2026-01-02T16:00:00Z", fieldsV1: {"f:metadata": {"f:labels": {"f:team": {}}}}}
`, []schema.Path{path("spec", "replicas"), path("metadata", "labels", "team")}, "labeler (Update at 2026-01-02T16:00:00Z)"},
		{"by which subresource it was written", `
- {manager: scaler, operation: Update, subresource: scale, time: "2026-01-02T15:04:05Z", fieldsV1: {"f:spec": {"f:replicas": {}}}}
`, []schema.Path{path("spec", "replicas")}, "scaler (scale) (Update at 2026-01-02T15:04:05Z)"},
		{"we do not blame ourselves", `
- {manager: ourselves, operation: Update, time: "2026-01-02T16:00:00Z", fieldsV1: {"f:spec": {"f:replicas": {}}}}
`, []schema.Path{path("spec", "replicas")}, ""},
		{"a removed field is nobody's", `
- {manager: labeler, operation: Update, time: "2026-01-02T16:00:00Z", fieldsV1: {"f:metadata": {"f:labels": {".": {}, "f:team": {}}}}}
`, []schema.Path{path("metadata", "labels", "app")}, ""},
		{"an element of a list is found by its key, not its index", `
- {manager: injector, operation: Update, time: "2026-01-02T16:00:00Z", fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"sidecar"}': {".": {}, "f:image": {}}}}}}}}
- {manager: setter, operation: Update, time: "2026-01-02T15:00:00Z", fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:image": {}}}}}}}}
`, []schema.Path{path(append(container, "image")...)}, "setter (Update at 2026-01-02T15:00:00Z)"},
		{"a key of two fields", `
- {manager: udp, operation: Update, time: "2026-01-02T16:00:00Z", fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:ports": {'k:{"containerPort":80,"protocol":"UDP"}': {"f:containerPort": {}}}}}}}}}}
- {manager: tcp, operation: Update, time: "2026-01-02T15:00:00Z", fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {"f:containerPort": {}}}}}}}}}}
`, []schema.Path{path(append(container, "ports", 0, "containerPort")...)}, "tcp (Update at 2026-01-02T15:00:00Z)"},
		{"a key that is a large number", `
- {manager: sharder, operation: Update, time: "2026-01-02T15:00:00Z", fieldsV1: {"f:spec": {"f:shards": {'k:{"id":3000000}': {"f:weight": {}}}}}}
`, []schema.Path{path("spec", "shards", 1, "weight")}, "sharder (Update at 2026-01-02T15:00:00Z)"},
		{"an element of a set is found by its value", `
- {manager: a, operation: Update, time: "2026-01-02T15:00:00Z", fieldsV1: {"f:metadata": {"f:finalizers": {'v:"example.com/a"': {}}}}}
- {manager: b, operation: Update, time: "2026-01-02T15:00:00Z", fieldsV1: {"f:metadata": {"f:finalizers": {'v:"example.com/b"': {}}}}}
`, []schema.Path{path("metadata", "finalizers", 1)}, "b (Update at 2026-01-02T15:00:00Z)"},
		{"a list that is owned as a whole", `
- {manager: setter, operation: Update, time: "2026-01-02T15:00:00Z", fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:args": {}}}}}}}}
`, []schema.Path{path(append(container, "args", 1)...)}, "setter (Update at 2026-01-02T15:00:00Z)"},
		{"of a whole object, who owns anything in it", `
- {manager: setter, operation: Update, time: "2026-01-02T15:00:00Z", fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:args": {}}}}}}}}
`, []schema.Path{path("spec", "template")}, "setter (Update at 2026-01-02T15:00:00Z)"},
		{"an element that is not there is nobody's", `
- {manager: setter, operation: Update, time: "2026-01-02T15:00:00Z", fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:args": {}}}}}}}}
`, []schema.Path{path("spec", "template", "spec", "containers", 7, "args")}, ""},
		{"entries without fields, or without a time, break nothing", `
- {manager: empty, operation: Update}
- {manager: timeless, operation: Update, fieldsV1: {"f:spec": {"f:replicas": {}}}}
`, []schema.Path{path("spec", "replicas")}, "timeless (Update)"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			live, _ := parse(t, spec).(map[string]any)
			metadata, _ := live["metadata"].(map[string]any)
			metadata["managedFields"] = parse(t, c.managed)
			want := c.want
			if want == "" {
				want = "unknown (the removal of a field leaves no trace)"
			}
			check.Equal(t, "blamed", want, Of(live, c.paths, ourselves).String())
			checkIndex(t, live)
		})
	}
}

// checkIndex compares the index with [Of], at each path of an object and below it.
func checkIndex(t *testing.T, live map[string]any) {
	t.Helper()
	index := IndexOf(live)
	var walk func(schema.Path, any)
	walk = func(at schema.Path, value any) {
		check.Equal(t, at.String(), Of(live, []schema.Path{at}, ""), index.Of(at))
		switch value := value.(type) {
		case map[string]any:
			for name, inner := range value {
				walk(append(slices.Clip(at), path(name)...), inner)
			}
			walk(append(slices.Clip(at), path("absent")...), nil)
		case []any:
			for i, inner := range value {
				walk(append(slices.Clip(at), path(i)...), inner)
			}
		}
	}
	for name, value := range live {
		walk(path(name), value)
	}
}

func parse(t *testing.T, text string) any {
	t.Helper()
	var value any
	raw, err := yaml.YAMLToJSON([]byte(text))
	check.Must(t, err)
	check.Must(t, json.Unmarshal(raw, &value))
	return value
}

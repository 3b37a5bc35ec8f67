package mutate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web, env: %s}]}}}}`

func complete() application.Hooks {
	return application.Hooks{Complete: true, Application: "app", Namespace: "demo"}
}

func both() application.Hooks {
	return application.Hooks{Complete: true, Shutdown: true, Application: "app", Namespace: "demo"}
}

// Unobserved elements may still be removed, and a missing token is still detected.
func TestHooksAskForNothingElse(t *testing.T) {
	const custom = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [
		{env: %s}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]}}}}`
	for list, want := range map[string]int64{
		"[{observer_schema_list_min_length: 0, observer_schema_list_max_length: 0}]":                         2,
		"[{}, {}, {observer_schema_list_min_length: 0, observer_schema_list_max_length: 2}]":                 2,
		"[{}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 0}]":                     3,
		"[{}, {value: null}, {observer_schema_list_min_length: 0, observer_schema_list_max_length: 0}]":      3,
		"[null, {value: null}, {observer_schema_list_min_length: 2, observer_schema_list_max_length: 2}]":    4,
		"[{}, {}, {name: null}, {observer_schema_list_min_length: 0, observer_schema_list_max_length: 0}]":   2,
		"[{}, {}, {name: null}, {observer_schema_list_min_length: 3, observer_schema_list_max_length: 100}]": 5,
	} {
		s := hooked(t, complete(), fmt.Sprintf(deployment, "[{name: A, value: a}, {name: B, value: b}]"), fmt.Sprintf(custom, list))
		env, _ := valueAt(s.schemas[0].Document(), "spec.template.spec.containers[0].env").([]any)
		check.Equal(t, list, any(want), env[len(env)-1].(object)[schema.MinLengthKey])
		s.checkTampering(t, 0)
		if want > 2 {
			continue
		}
		for _, left := range []int{1, 2} { // B, or neither
			live := runtime.DeepCopyJSON(s.resources[0])
			change(live, schema.MustParsePath("spec.template.spec.containers[0].env"), func(items any) any { return items.([]any)[left:] })
			check.Equal(t, list+": differences without what is not observed", 0, len(s.schemas[0].Compare(s.resources[0], live).Drift()))
		}
	}
}

// A container that is observed only because of the hooks does not replace one that the user
// wants.
func TestHooksMissContainers(t *testing.T) {
	const text = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: a}, {name: b}, {name: c}]}}"
	const custom = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [%s, {observer_schema_list_min_length: %d, observer_schema_list_max_length: %d}]}}"
	tests := []struct {
		why         string
		items       string
		least, most int
		want        []int64
		missed      bool
	}{
		{"one is observed, and required", "{image: null}", 1, 1, []int64{3, 3}, true},
		{"one is observed, and two are required", "{image: null}", 2, 5, []int64{3, 5}, true},
		{"one is observed, and none is required", "{image: null}", 0, 0, []int64{0, 0}, false},
		{"none is observed, and one is required", "{}, {}", 1, 2, []int64{1, 3}, false},
		{"all are observed, and two are required", "{image: null}, null, {name: null}", 2, 4, []int64{2, 4}, false},
		{"more are required than there are", "{image: null}", 4, 0, []int64{4, 0}, true},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			s := hooked(t, complete(), text, fmt.Sprintf(custom, test.items, test.least, test.most))
			containers, _ := valueAt(s.schemas[0].Document(), "spec.containers").([]any)
			control, _ := containers[3].(object)
			check.Equal(t, "bounds", test.want, []int64{control[schema.MinLengthKey].(int64), control[schema.MaxLengthKey].(int64)})
			check.Equal(t, "warnings", test.want[0] > int64(test.least), len(s.warnings) > 0)
			live := runtime.DeepCopyJSON(s.resources[0])
			change(live, schema.MustParsePath("spec.containers"), func(items any) any { return items.([]any)[1:] })
			check.Equal(t, "the first one is missed", test.missed, len(s.schemas[0].Compare(s.resources[0], live).Drift()) > 0)
		})
	}
}

// If no client can call the hook, there are no Secrets, and a warning says so.
func TestHooksWithoutAWorkloadAddNothing(t *testing.T) {
	for _, text := range []string{
		"",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}",
		"{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web}]}}}}",
		"{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {initContainers: [{name: web}]}}",
	} {
		s := hooked(t, both(), text, "")
		check.Equal(t, "resources", decode(t, text), s.resources)
		check.Equal(t, "secrets", 0, len(s.secrets))
		check.Equal(t, "warnings", []string{
			"metadata.annotations[krake.dev/hooks]: the manifest has no workload with containers that could call a hook, so the hooks add nothing: add one, or leave the annotation out",
		}, s.warnings)
	}
}

// Each kind has its Pod template at another path. With the default schema there is no drift,
// and everything that is removed or changed is restored.
func TestHooksOfEachKind(t *testing.T) {
	const pod = "{spec: {initContainers: [{name: init}], containers: [{name: a, env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}], envFrom: [{configMapRef: {name: a}}]}, {name: b, env: null}], volumes: null}}"
	for kind, spec := range map[string]string{
		"v1 Pod":                   pod[len("{spec: ") : len(pod)-1],
		"v1 ReplicationController": "{template: " + pod + "}",
		"apps/v1 Deployment":       "{template: " + pod + "}",
		"apps/v1 StatefulSet":      "{template: " + pod + "}",
		"apps/v1 DaemonSet":        "{template: " + pod + "}",
		"apps/v1 ReplicaSet":       "{template: " + pod + "}",
		"batch/v1 Job":             "{template: " + pod + "}",
		"batch/v1 CronJob":         "{jobTemplate: {spec: {template: " + pod + "}}}",
		"batch/v1beta1 CronJob":    "{jobTemplate: {spec: {template: " + pod + "}}}",
	} {
		for _, init := range []bool{false, true} {
			hooks := both()
			hooks.InitContainers = init
			apiVersion, kind, _ := strings.Cut(kind, " ")
			text := fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: web}, spec: %s}", apiVersion, kind, spec)
			for _, custom := range []string{"", fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: web}}", apiVersion, kind)} {
				s := hooked(t, hooks, text, custom)
				check.Equal(t, kind+": secrets", 4, len(s.secrets))
				check.Empty(t, kind+": differences from itself", s.schemas[0].Compare(s.resources[0], s.resources[0]))
				check.Equal(t, kind+": what was tried", map[bool]int{false: 2*(2+4) + 2, true: 3*(2+4) + 2}[init], s.checkTampering(t, 0))
			}
		}
	}
}

// If the manifest has null for a list, or omits it, the list belongs to the hooks. Elements
// and defaults that a server or others add are no drift.
func TestHooksLeaveListsOpen(t *testing.T) {
	for _, null := range []string{"", ", env: null, volumeMounts: null", ", env: [], volumeMounts: []"} {
		for _, volumes := range []string{"", ", volumes: null", ", volumes: []"} {
			s := hooked(t, complete(), "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a"+null+"}]"+volumes+"}}", "")
			live := runtime.DeepCopyJSON(s.resources[0])
			for _, list := range []string{"spec.volumes", "spec.containers[0].volumeMounts", "spec.containers[0].env"} {
				change(live, schema.MustParsePath(list), func(items any) any {
					return slices.Insert(items.([]any), 0, any(object{"name": "token", "mountPath": "/var/run/secrets"}))
				})
			}
			change(live, schema.MustParsePath("spec.volumes[1].secret.defaultMode"), func(any) any { return int64(420) })
			check.Empty(t, fmt.Sprintf("with %q and %q", null, volumes), s.schemas[0].Compare(s.resources[0], live))
		}
	}
}

// A change in one place of the result affects neither other places nor the arguments.
func TestHooksShareNothing(t *testing.T) {
	resources := decode(t, "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, env: [{name: A}]}, {name: b}]}}")
	custom := decode(t, "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {hostname: null}}")
	before := runtime.DeepCopyJSON(object{"resources": valuesOf(resources), "custom": valuesOf(custom)})
	s := injected(t, complete(), resources, custom)
	second := runtime.DeepCopyJSONValue(valueAt(s.resources[0], "spec.containers[1]"))
	for _, place := range []string{"env[0]", "env[1]", "env[1].valueFrom.secretKeyRef", "volumeMounts[0]"} {
		change(s.resources[0], schema.MustParsePath("spec.containers[0]."+place+".name"), func(any) any { return "changed" })
		change(s.custom[0], schema.MustParsePath("spec.containers[0]."+place+".name"), func(any) any { return "changed" })
	}
	check.Equal(t, "the other container", second, valueAt(s.resources[0], "spec.containers[1]"))
	check.Equal(t, "the arguments", before, object{"resources": valuesOf(resources), "custom": valuesOf(custom)})
}

// A malformed workload stays unchanged here, and is refused elsewhere.
func TestHooksLeaveAloneWhatIsMalformed(t *testing.T) {
	hooks := both()
	hooks.InitContainers = true
	for _, spec := range []string{
		"", "null", "text", "[]", "{}", "{template: null}", "{template: {spec: [1]}}", "{template: {spec: {containers: null}}}",
		"{template: {spec: {containers: []}}}", "{template: {spec: {containers: {}}}}", "{template: {spec: {containers: [null]}}}",
		"{template: {spec: {containers: [a, {name: b}]}}}", "{template: {spec: {containers: [{name: a, env: {}}]}}}",
		"{template: {spec: {containers: [{name: a, volumeMounts: 1}]}}}", "{template: {spec: {containers: [{name: a}], volumes: {}}}}",
		"{template: {spec: {containers: [{name: a}], initContainers: {}}}}",
	} {
		text := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: " + spec + "}"
		s := hooked(t, hooks, text, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}")
		check.Equal(t, "resources", decode(t, text), s.resources)
	}
	for _, resources := range [][]object{nil, {nil}, {{}}, {nil, {"apiVersion": "v1", "kind": "Pod", "spec": object{"containers": []any{object{}}}}}} {
		injected, refusals := inject(hooks, resources, nil)
		check.Equal(t, "resources", len(resources), len(injected.resources))
		check.Equal(t, "refusals", 0, len(refusals))
	}
}

// The manifest may omit or name the Application's own namespace: the Secret exists once.
func TestHookSecretsInNamespaces(t *testing.T) {
	pod := func(name, namespace string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s}, spec: {containers: [{name: a}]}}\n---\n", name, namespace)
	}
	tests := []struct {
		why, manifest string
		want          []any
	}{
		{"none is said", pod("a", "null") + pod("b", `""`), []any{nil, nil}},
		{"one is said", pod("a", "demo") + pod("b", "demo"), []any{"demo", "demo"}},
		{"the same one is said and not said", pod("a", "null") + pod("b", "demo"), []any{nil, nil}},
		{"that of what is no workload is of no interest", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}\n---\n" + pod("a", "null"), []any{nil, nil}},
		{"two", pod("a", "other") + pod("b", "null") + pod("c", "other"), []any{"other", nil, "other", nil}},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			s := hooked(t, complete(), test.manifest, "")
			var got []any
			for _, resource := range s.resources[len(s.resources)-len(s.secrets):] {
				got = append(got, below(resource, "metadata")["namespace"])
			}
			check.Equal(t, "namespaces", test.want, got)
		})
	}
}

// hookCase is a case of testdata/hooks: the exact bytes after the injection.
type hookCase struct {
	Why            string   `json:"why"`
	Hooks          []string `json:"hooks"`
	InitContainers bool     `json:"init_containers,omitempty"`
	Manifest       string   `json:"manifest"`
	ObserverSchema string   `json:"observer_schema,omitempty"`
	Warnings       []string `json:"warnings,omitempty"`
	// Resources and Custom have a line for each document.
	Resources string `json:"resources"`
	Custom    string `json:"custom"`
}

// A change to one of these files is a change of the format, see TestGolden.
// KRAKE_WRITE_GOLDEN=yes fills in the results of cases without any.
func TestHooksGolden(t *testing.T) {
	check.Golden(t, "testdata/hooks/*.yaml", 6, func(t *testing.T, want hookCase) (got hookCase, missing string) {
		got = want.injected(t)
		if want.Resources == "" {
			missing = "resources: |\n" + check.Indented(got.Resources) + "custom: |\n" + check.Indented(got.Custom)
		}
		return got, missing
	})
}

func (c hookCase) injected(t *testing.T) hookCase {
	t.Helper()
	hooks := application.Hooks{
		Complete: slices.Contains(c.Hooks, "complete"), Shutdown: slices.Contains(c.Hooks, "shutdown"),
		InitContainers: c.InitContainers, Application: "app", Namespace: "demo",
	}
	s := hooked(t, hooks, c.Manifest, c.ObserverSchema)
	c.Resources, c.Custom, c.Warnings = lines(t, s.resources), lines(t, s.custom), s.warnings
	return c
}

func lines(t *testing.T, documents []object) string {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	for _, document := range documents {
		check.Must(t, encoder.Encode(document))
	}
	return b.String()
}

// subject is an injection with the schemas of its resources, as an agent uses them.
type subject struct {
	injection

	set     schema.Set
	schemas []schema.Schema
}

// hooked injects hooks into a text that is not refused, neither before nor after.
func hooked(t *testing.T, hooks application.Hooks, text, observerSchema string) subject {
	t.Helper()
	resources, custom := decode(t, text), decode(t, observerSchema)
	mangled(t, resources, custom)
	return injected(t, hooks, resources, custom)
}

func injected(t *testing.T, hooks application.Hooks, resources, custom []object) subject {
	t.Helper()
	before := runtime.DeepCopyJSONValue([]any{valuesOf(resources), valuesOf(custom)})
	result, refusals := inject(hooks, resources, custom)
	check.Must(t, refusals.ToAggregate())
	check.Equal(t, "the arguments", before, any([]any{valuesOf(resources), valuesOf(custom)}))
	s := subject{injection: result, set: align(mangled(t, result.resources, result.custom))}
	var err error
	s.schemas, err = s.set.Of(s.resources)
	check.Must(t, err)
	return s
}

func mangled(t *testing.T, resources, custom []object) schema.Set {
	t.Helper()
	set, findings := schema.Mangle(valuesOf(resources), valuesOf(custom))
	if len(findings.Errors()) > 0 {
		t.Fatalf("mistakes: %v", findings.Errors())
	}
	return set
}

// checkTampering removes each added element of a resource. It checks that this is detected, and
// that a repair leaves no drift. It returns the number of tries. The files of TestHooksGolden show
// that each value of an element is observed.
func (s subject) checkTampering(t *testing.T, i int) int {
	t.Helper()
	observed, desired := s.schemas[i], s.resources[i]
	always := len(observed.Compare(desired, desired)) // it violates a length of its own
	added := addedIn(desired)
	for _, element := range added {
		list, index := element[:len(element)-1], element[len(element)-1].Index
		live := runtime.DeepCopyJSON(desired)
		change(live, list, func(items any) any { return slices.Delete(items.([]any), index, index+1) })
		check.Equal(t, element.String()+" can be removed without a difference", false, len(observed.Compare(desired, live).Drift()) == 0)
		check.Equal(t, "differences after the repair of "+element.String(), always, len(observed.Compare(desired, observed.Overlay(desired, live))))
	}
	return len(added)
}

// addedIn returns the paths of the elements that hooks have added to a workload.
func addedIn(resource object) []schema.Path {
	var paths []schema.Path
	var walk func(value any, at schema.Path)
	walk = func(value any, at schema.Path) {
		switch value := value.(type) {
		case object:
			name, _ := value["name"].(string)
			if strings.HasPrefix(name, "KRAKE_") || strings.Contains(name, "-krake-") && strings.Contains(at.String(), "olume") {
				paths = append(paths, at)
				return
			}
			for name, field := range value {
				walk(field, append(slices.Clone(at), schema.FieldPath(name)...))
			}
		case []any:
			for i, item := range value {
				walk(item, append(slices.Clone(at), schema.Step{Index: i}))
			}
		}
	}
	walk(resource, nil)
	return paths
}

func valueAt(value any, place string) any { return schema.ValueAt(value, schema.MustParsePath(place)) }

// change edits the value at a path.
func change(root any, path schema.Path, edit func(any) any) {
	last := path[len(path)-1]
	switch parent := schema.ValueAt(root, path[:len(path)-1]).(type) {
	case object:
		parent[last.Field] = edit(parent[last.Field])
	case []any:
		parent[last.Index] = edit(parent[last.Index])
	}
}

type object = map[string]any

func decode(t *testing.T, text string) []object {
	t.Helper()
	values, err := manifest.Decode([]byte(text))
	check.Must(t, err)
	return objectsOf(values)
}

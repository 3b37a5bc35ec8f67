package reconcile_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/internal/forecast"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// guarded is a workload whose schema leaves the replicas to others, and allows further containers.
const guarded = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {tier: front}}, spec: {replicas: 3,
template: {spec: {containers: [{name: web, image: "web:1", env: [{name: A, value: a}, {name: B, value: b}]}, {name: log, image: "log:1"}]}}}}`

// The guard announces what the loop reverts, and nothing else. It has only the stored Application, and the loop
// has its memory.
func TestTheGuardForetellsTheLoop(t *testing.T) {
	const observed = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {tier: null}}, spec: {paused: null, template: {spec: {
containers: [{name: null, image: null, env: [{name: null, value: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 2}]}, {name: null, image: null}, {observer_schema_list_min_length: 2, observer_schema_list_max_length: 0}]}}}}`
	containers := []string{"spec", "template", "spec", "containers"}
	// inContainers changes the list of containers.
	inContainers := func(change func(list []any) []any) func(map[string]any) {
		return func(live map[string]any) {
			list, _, err := unstructured.NestedSlice(live, containers...)
			check.Must(t, err)
			writes(change(list), containers...)(live)
		}
	}
	otherImage := inContainers(func(list []any) []any { list[0].(map[string]any)["image"] = "web:2"; return list })
	heldUntil := func(at time.Time) func(map[string]any) {
		return func(live map[string]any) {
			writes(at.Format(time.RFC3339), "metadata", "annotations", application.HoldUntilAnnotation)(live)
			otherImage(live)
		}
	}
	nothing := func(*testing.T, *world) {}
	cases := []struct {
		name, schema string
		before       func(t *testing.T, w *world)
		request      func(live map[string]any)
		announces    bool
	}{
		{"an observed value", observed, nothing, otherImage, true},
		{"a value that is not observed", observed, nothing, writes(int64(9), "spec", "replicas"), false},
		{"a value that the default schema observes", "", nothing, writes(int64(9), "spec", "replicas"), true},
		{"a value is removed", "", nothing, removes("spec", "replicas"), true},
		{"a mark", observed, nothing, removes("metadata", "labels", application.OwnedByLabel), true},
		{"an element is removed", observed, nothing, inContainers(func(list []any) []any { return list[:1] }), true},
		{"an element in front, which the schema allows", observed, nothing, inContainers(func(list []any) []any {
			return slices.Insert(list, 0, any(map[string]any{"name": "sidecar", "image": "side:1"}))
		}), false},
		{"the same, which it does not allow", "", nothing, inContainers(func(list []any) []any {
			return slices.Insert(list, 0, any(map[string]any{"name": "sidecar", "image": "side:1"}))
		}), true},
		{"elements in another order", "", nothing, inContainers(func(list []any) []any { slices.Reverse(list); return list }), true},
		{"a hold in the same request", observed, nothing, heldUntil(noon.Add(time.Hour)), false},
		{"a hold that is over", observed, nothing, heldUntil(noon), true},
		{"a hold beyond the limit that has passed", observed, func(t *testing.T, w *world) {
			w.change(t, "Deployment web", func(live *unstructured.Unstructured) { heldUntil(noon.Add(50 * time.Hour))(live.Object) })
			w.mustPass(t)
			w.now = noon.Add(5 * time.Hour)
			w.mustPass(t)
		}, otherImage, true},
		{"a hold of the Application", observed, func(_ *testing.T, w *world) { w.annotate(application.HoldUntilAnnotation, noon.Add(time.Hour)) }, otherImage, false},
		{"mode observe", observed, func(_ *testing.T, w *world) { w.annotate(application.ModeAnnotation, application.Observe) }, otherImage, false},
		{"a restarted agent", observed, func(_ *testing.T, w *world) { w.restart() }, otherImage, true},
		{"a spec that the loop has not seen", observed, func(_ *testing.T, w *world) {
			w.respec(strings.Replace(guarded, "front", "back", 1), observed)
		}, writes("middle", "metadata", "labels", "tier"), true},
		{"a field that the API server refuses", "", func(t *testing.T, w *world) {
			w.admit = immutable("spec", "replicas")
			w.respec(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 4}}`, "")
			w.mustPass(t)
		}, writes("x", "metadata", "labels", "theirs"), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, guarded, c.schema)
			c.before(t, w)
			before := w.objects["Deployment web"]
			after := runtime.DeepCopyJSON(before)
			c.request(after)
			app, object := w.guardSees(t)
			undone := forecast.Undone(app, &object, before, after, forecast.Setting{Now: w.now.Add(w.step), MaxHold: w.MaxHold})
			check.Equal(t, "it is announced", c.announces, len(undone) > 0)

			w.objects["Deployment web"] = after
			w.bump(after)
			w.mustPass(t)
			changed := changedFields(after, w.objects["Deployment web"], nil)
			for _, path := range changed {
				if !touches(undone, path) {
					t.Errorf("the loop changes %s, which was not announced: %v", path, undone)
				}
			}
			for _, d := range undone {
				if !slices.ContainsFunc(changed, func(path schema.Path) bool { return touches(schema.Differences{d}, path) }) {
					t.Errorf("%s was announced, and the loop leaves it", d.Path)
				}
			}
		})
	}
}

// guardSees returns the stored Application, and its object as the guard has it.
func (w *world) guardSees(t *testing.T) (*application.Application, plan.Object) {
	t.Helper()
	app := w.app(t)
	var none *plan.Cache
	plans, err := none.Of(app)
	check.Must(t, err)
	id := manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"}
	object, found, err := plans.Find(app, manifest.Ref{ID: id}, app.Namespace, plan.NoTypes)
	check.Must(t, err)
	check.Equal(t, "the plan has the object", true, found)
	return app, object
}

// changedFields returns the paths at which two values differ, as deep as both have objects. It leaves out
// what the API server counts.
func changedFields(a, b any, at schema.Path) []schema.Path {
	before, ok := a.(map[string]any)
	after, okAfter := b.(map[string]any)
	if !ok || !okAfter {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []schema.Path{at}
	}
	var found []schema.Path
	for name := range merge(before, after) {
		if name != "resourceVersion" {
			found = append(found, changedFields(before[name], after[name], append(slices.Clone(at), schema.Step{Field: name, Index: -1}))...)
		}
	}
	return found
}

// touches reports whether one of the differences is above the path, at it, or below.
func touches(differences schema.Differences, path schema.Path) bool {
	return plan.IsAmong(differences, path) || slices.ContainsFunc(differences, func(d schema.Difference) bool {
		return plan.IsAmong(schema.Differences{{Path: path}}, d.Path)
	})
}

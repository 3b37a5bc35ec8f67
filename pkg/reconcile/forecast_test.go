package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/forecast"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/plan"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// guarded are manifests with observer schemas, or with the default one.
var guarded = [][2]string{
	{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {tier: front}}, spec: {replicas: 3, selector: {matchLabels: {app: web}},
template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1", env: [{name: A, value: a}, {name: B, value: b}]}, {name: log, image: "log:1"}]}}}}`, ""},
	{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, template: {spec: {containers: [{name: web, image: "web:1"}]}}}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {paused: null, template: {spec: {containers: [{name: null, image: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 0}]}}}}`},
	{`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{name: http, port: 80}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: null, selector: {app: null}, ports: [{name: null, port: null, nodePort: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 2}]}}`},
	{`{apiVersion: v1, kind: ConfigMap, metadata: {name: web, annotations: {about: it}}, data: {a: "1", b: "2"}}`, ""},
	{`{apiVersion: example.com/v1, kind: Song, metadata: {name: web}, spec: {verses: [one, two], bars: [[1, 2], [3]], key: {of: D, minor: true}, tempo: 1.5}}`, ""},
	{`{apiVersion: example.com/v1, kind: Song, metadata: {name: web}, spec: {verses: [one, two], key: {of: D}}}`,
		`{apiVersion: example.com/v1, kind: Song, metadata: {name: web}, spec: {verses: [null, {observer_schema_list_min_length: 0, observer_schema_list_max_length: 3}], key: null, tempo: null}}`},
}

// The guard undoes in advance what the loop reverts, and nothing else. It has only the stored Application,
// and the loop has its memory. Both meet random requests, also while something else has drifted already, while
// the object is held, and in modes that revert nothing.
func TestTheGuardForetellsTheLoop(t *testing.T) {
	seed := seedOf(t)
	steps := 25_000 / len(guarded)
	if testing.Short() {
		steps = 1_200 / len(guarded)
	}
	for i := range guarded {
		t.Run(fmt.Sprintf("manifest %d", i), func(t *testing.T) {
			t.Parallel()
			g := newGuardWalk(t, rand.New(rand.NewPCG(seed, uint64(len(guarded[i][0])))), i)
			for range steps {
				if g.step(); t.Failed() {
					t.Fatalf("the last steps: %q", g.happened[max(0, len(g.happened)-12):])
				}
			}
			t.Logf("%d requests, %d of them told, %d followed by a repair", steps, g.told, g.reverted)
			if g.told < steps/10 || g.told > steps*9/10 {
				t.Errorf("%d of %d requests were told: the steps do not test much", g.told, steps)
			}
		})
	}
}

// guardWalk makes random requests to one object.
type guardWalk struct {
	t              *testing.T
	chance         *rand.Rand
	w              *world
	id             manifest.ID
	name           string
	plans          *plan.Cache
	happened       []string
	told, reverted int
}

func newGuardWalk(t *testing.T, chance *rand.Rand, number int) *guardWalk {
	t.Helper()
	g := &guardWalk{t: t, chance: chance, w: newWorld(t, guarded[number][0], guarded[number][1])}
	g.w.answer = func(live map[string]any) { // as an API server that assigns values
		if spec, ok := live["spec"].(map[string]any); ok && live["kind"] == "Service" && spec["type"] == nil {
			spec["type"] = "ClusterIP"
		}
	}
	g.w.step = 11 * time.Minute // then all fights are forgotten: they only delay repairs
	g.settle()
	for name, live := range g.w.objects {
		g.name = name
		var err error
		g.id, err = manifest.Identify(live)
		check.Must(t, err)
	}
	return g
}

// settle lets the loop run until it writes nothing to the target.
func (g *guardWalk) settle() {
	for range 5 {
		if g.pass(); len(g.w.touches()) == 0 {
			return
		}
	}
	g.t.Errorf("the loop does not rest: %q", g.w.calls)
}

// pass lets the loop run once.
func (g *guardWalk) pass() {
	g.w.forget()
	g.w.now = g.w.now.Add(g.w.step)
	if _, err := g.w.Reconcile(g.t.Context(), ctrl.Request{NamespacedName: appName}); err != nil {
		g.t.Errorf("the loop fails: %v", err)
	}
}

// step makes a request, compares what the guard and the loop make of it, and sometimes changes the wishes
// of the user before.
func (g *guardWalk) step() {
	if g.chance.IntN(20) == 0 {
		g.wish()
	}
	before := g.w.objects[g.name]
	if owner, isMarked := application.OwnerOf(before); !isMarked || owner != appName {
		g.reclaim()
		return
	}
	if g.chance.IntN(30) == 0 {
		g.delete(before)
		return
	}
	after := runtime.DeepCopyJSON(before)
	g.say(g.change(after))
	g.w.answer(after) // the API server defaults before it asks
	app, object := g.planned()
	drifted := object.Marked.Compare(object.MarkedDesired(), before).Drift()
	undone := forecast.Undone(app, &object, before, after, forecast.Setting{Now: g.w.now.Add(g.w.step), MaxHold: g.w.MaxHold})
	for _, d := range undone {
		isInList := len(plan.FieldsOf(d.Path)) < len(d.Path) // elements move
		if !isInList && d.Kind == schema.Changed && plan.IsAmong(drifted, d.Path) && reflect.DeepEqual(schema.ValueAt(before, d.Path), schema.ValueAt(after, d.Path)) {
			g.t.Errorf("%s differed before, and is told", d.Path)
		}
		if text := forecast.TextOf(app, object.ID, d, after); text == "" {
			g.t.Error("a difference without a text")
		}
	}
	if len(undone) > 0 {
		g.told++
	}
	g.w.objects[g.name] = after
	g.w.bump(after)
	if g.chance.IntN(4) == 0 {
		return // the next request comes before the loop
	}
	g.pass() // a second one is later: the hold may be over
	g.compare(undone, drifted, after, g.w.objects[g.name])
	g.settle()
}

// compare checks that the loop has changed the fields that were told, and no others but those that had
// drifted before.
func (g *guardWalk) compare(undone, drifted schema.Differences, after, final map[string]any) {
	changed := changedFields(after, final, nil)
	if len(changed) > 0 {
		g.reverted++
	}
	for _, path := range changed {
		if !touches(undone, path) && !touches(drifted, path) {
			g.t.Errorf("the loop changes %s, which was not told: %v", path, undone)
		}
	}
	for _, d := range undone {
		if !slices.ContainsFunc(changed, func(path schema.Path) bool { return touches(schema.Differences{d}, path) }) {
			g.t.Errorf("%s was told, and the loop leaves it at %v", d.Path, schema.ValueAt(final, d.Path))
		}
	}
}

func (g *guardWalk) delete(before map[string]any) {
	app, object := g.planned()
	told := forecast.Recreated(app, &object, before)
	g.say("delete")
	delete(g.w.objects, g.name)
	g.w.gone[g.name] = true
	g.settle()
	delete(g.w.gone, g.name)
	if exists := g.w.objects[g.name] != nil; exists != told {
		g.t.Errorf("recreation was told: %v, it exists again: %v", told, exists)
	}
	if g.w.objects[g.name] == nil { // this mode recreates nothing
		g.w.annotate(application.ModeAnnotation, application.Enforce)
		g.settle()
	}
}

// reclaim lets the loop have the object back that the last request took the marks from. An API server does not
// ask the guard about it.
func (g *guardWalk) reclaim() {
	g.w.annotate(application.ModeAnnotation, application.Enforce)
	g.settle()
	if owner, _ := application.OwnerOf(g.w.objects[g.name]); owner != appName { // a restarted agent does not know it
		delete(g.w.objects, g.name)
		g.settle()
	}
}

// wish changes mode, hold or manifest, or restarts the agent.
func (g *guardWalk) wish() {
	g.settle()
	switch g.chance.IntN(7) {
	case 6:
		g.respec()
	case 0:
		g.w.annotate(application.ModeAnnotation, []application.Mode{application.Observe, application.Suspend, application.Enforce}[g.chance.IntN(3)])
	case 1:
		g.w.annotate(application.ModeAnnotation, application.Enforce)
	case 2:
		g.w.annotate(application.HoldUntilAnnotation, g.w.now.Add(time.Duration(g.chance.IntN(120))*time.Minute).UTC())
	case 3:
		delete(g.w.cm.Annotations, application.HoldUntilAnnotation)
		g.w.cm.ResourceVersion = g.w.next()
	case 4:
		g.w.annotate(application.HoldAnnotation, "deny")
	default:
		delete(g.w.cm.Annotations, application.HoldAnnotation)
		g.w.annotate(application.ModeAnnotation, application.Enforce) // a suspended agent looks at no object
		g.w.restart()
		g.settle() // until then, the agent does not know an object that loses its marks
	}
	g.say(fmt.Sprint(g.w.cm.Annotations))
	if g.chance.IntN(2) == 0 {
		g.settle()
	}
}

// respec writes another number into the manifest. The next request may come before the loop has seen it.
func (g *guardWalk) respec() {
	text := regexp.MustCompile(`(replicas|port|tempo): [0-9.]+`).ReplaceAllString(g.w.cm.Data[application.ManifestKey], fmt.Sprintf("$1: %d", 1+g.chance.IntN(9)))
	g.w.respec(text, g.w.cm.Data[application.ObserverSchemaKey])
}

func (g *guardWalk) say(what string) { g.happened = append(g.happened, what) }

// planned returns the stored Application, and its object as the guard has it.
func (g *guardWalk) planned() (*application.Application, plan.Object) {
	app := g.w.app(g.t)
	var err error
	g.plans, err = g.plans.Of(app)
	check.Must(g.t, err)
	object, found, err := g.plans.Find(app, manifest.Ref{ID: g.id}, app.Namespace)
	check.Must(g.t, err)
	if !found {
		g.t.Fatalf("the plan has no %s", g.id)
	}
	return app, object
}

// change changes something in an object, and returns what.
func (g *guardWalk) change(live map[string]any) string {
	if g.chance.IntN(12) == 0 {
		object := &unstructured.Unstructured{Object: live}
		annotations := object.GetAnnotations()
		delete(annotations, application.HoldUntilAnnotation)
		if g.chance.IntN(2) == 0 {
			annotations[application.HoldUntilAnnotation] = g.w.now.Add(time.Duration(g.chance.IntN(200)) * time.Minute).UTC().Format(time.RFC3339)
		}
		object.SetAnnotations(annotations)
		return "hold " + annotations[application.HoldUntilAnnotation]
	}
	var said string
	for range 1 + g.chance.IntN(2) {
		var all []schema.Path
		for _, root := range []string{"metadata", "spec", "data"} {
			if live[root] != nil {
				all = append(all, pathsIn(live[root], schema.Path{{Field: root, Index: -1}})...)
			}
		}
		if path := all[g.chance.IntN(len(all))]; mayChange(path) {
			live[path[0].Field] = g.mutate(live[path[0].Field], path[1:], path[0].Field == "metadata")
			said += path.String() + " "
		}
	}
	return said
}

// mayChange reports whether a request can change the field.
func mayChange(path schema.Path) bool {
	return path[0].Field != "metadata" || len(path) == 3 && (path[1].Field == "labels" || path[1].Field == "annotations")
}

// mutate returns a value with a change at the path.
func (g *guardWalk) mutate(value any, path schema.Path, onlyTexts bool) any {
	if len(path) > 0 {
		switch parent := value.(type) {
		case map[string]any:
			if name := path[0].Field; len(path) == 1 && g.chance.IntN(4) == 0 {
				delete(parent, name)
			} else {
				parent[name] = g.mutate(parent[name], path[1:], onlyTexts)
			}
		case []any:
			parent[path[0].Index] = g.mutate(parent[path[0].Index], path[1:], onlyTexts)
		}
		return value
	}
	fresh := fmt.Sprintf("x%d", g.chance.IntN(1000))
	switch present := value.(type) {
	case map[string]any:
		present[fresh] = fresh
	case []any:
		switch at := g.chance.IntN(len(present) + 1); {
		case at == len(present):
			return append(present, g.another(present, fresh))
		case g.chance.IntN(2) == 0:
			return slices.Delete(present, at, at+1)
		default:
			g.chance.Shuffle(len(present), func(i, j int) { present[i], present[j] = present[j], present[i] })
		}
	case int64:
		return present + 1 + g.chance.Int64N(3)
	case bool:
		return !present
	default:
		return fresh
	}
	return value
}

// another returns one more element for a list.
func (g *guardWalk) another(list []any, fresh string) any {
	if len(list) == 0 {
		return fresh
	}
	element := runtime.DeepCopyJSONValue(list[g.chance.IntN(len(list))])
	if fields, ok := element.(map[string]any); ok {
		fields["name"] = fresh
		if _, isPort := fields["port"]; isPort {
			fields["port"] = 1000 + g.chance.Int64N(1000)
		}
	}
	return element
}

// pathsIn returns the paths of all values in a value, and of the value.
func pathsIn(value any, at schema.Path) []schema.Path {
	all := []schema.Path{slices.Clone(at)}
	switch parent := value.(type) {
	case map[string]any:
		for name := range parent {
			all = append(all, pathsIn(parent[name], append(slices.Clone(at), schema.Step{Field: name, Index: -1}))...)
		}
		slices.SortFunc(all, func(a, b schema.Path) int { return slices.Compare([]string{a.String()}, []string{b.String()}) })
	case []any:
		for i := range parent {
			all = append(all, pathsIn(parent[i], append(slices.Clone(at), schema.Step{Index: i}))...)
		}
	}
	return all
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
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for name := range names {
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

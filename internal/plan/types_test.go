package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// concertsBy returns types in which the parts of a Concert have a key.
func concertsBy(t *testing.T, key string) *apitypes.Types {
	t.Helper()
	types, err := apitypes.FromOpenAPI([]byte(`{"components": {"schemas": {"Concert": {"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "stage.example.com", "version": "v1", "kind": "Concert"}],
		"properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "spec": {"type": "object", "properties": {
			"parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["` + key + `"],
				"items": {"type": "object", "properties": {"name": {"type": "string"}, "seat": {"type": "string"}, "beats": {"type": "integer"}}}}}}}}}}}`))
	check.Must(t, err)
	return types
}

// newConcert returns an Application with a Concert of these parts, and what was learned before.
func newConcert(t *testing.T, parts string, learned ...map[string]any) *application.Application {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", UID: "app-uid", Annotations: map[string]string{application.FormatAnnotation: application.Format}},
		Data: map[string]string{
			application.ManifestKey: "{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening}, spec: {parts: " + parts + "}}",
			application.ObserverSchemaKey: `{apiVersion: stage.example.com/v1, kind: Concert, metadata: {name: opening}, spec: {parts: [{beats: null}, {beats: null},
				{observer_schema_list_min_length: 2, observer_schema_list_max_length: 0}]}}`,
		},
	}
	check.Must(t, mutate.PrepareForCreate(t.Context().Err, cm).Refusals.ToAggregate())
	app, err := application.Read(cm)
	check.Must(t, err)
	app.Learned = learned
	return app
}

// complete plans the Concert with these types.
func complete(t *testing.T, cached *plan.Cache, app *application.Application, types *apitypes.Types) plan.Object {
	t.Helper()
	drafts := cached.Drafts()
	drafts[0].Types = types
	check.Must(t, cached.Complete(app, drafts))
	return drafts[0]
}

func partsOf(object map[string]any) any {
	return object["spec"].(map[string]any)["parts"]
}

// Another definition is another plan, and so is one that cannot be read. The guard has the same plan as the loop.
func TestTypesArePartOfThePlan(t *testing.T) {
	app := newConcert(t, "[{name: horn, seat: a, beats: 3}, {name: tuba, seat: b, beats: 4}]")
	var none *plan.Cache
	cached, err := none.Of(app)
	check.Must(t, err)
	live := map[string]any{"spec": map[string]any{"parts": []any{
		map[string]any{"name": "drum", "seat": "a", "beats": int64(3)}, map[string]any{"name": "horn", "seat": "c", "beats": int64(7)}, map[string]any{"name": "tuba", "seat": "b", "beats": int64(4)},
	}}}
	byName, bySeat := concertsBy(t, "name"), concertsBy(t, "seat")
	for _, c := range []struct {
		types *apitypes.Types
		want  []string
	}{{byName, []string{"spec.parts[1].beats"}}, {bySeat, nil}, {nil, nil}, {byName, []string{"spec.parts[1].beats"}}} {
		found, _, err := cached.Find(app, manifest.Ref{ID: manifest.ID{APIVersion: "stage.example.com/v1", Kind: "Concert", Namespace: "shop", Name: "opening"}}, "shop",
			func(manifest.ID) *apitypes.Types { return c.types })
		check.Must(t, err)
		for _, object := range []plan.Object{complete(t, cached, app, c.types), found} {
			var paths []string
			for _, d := range object.Schema.Compare(object.Desired(), live).Drift() {
				paths = append(paths, d.Path.String())
			}
			check.Equal(t, "drift", c.want, paths)
		}
	}
}

// A value that was learned of an element stays with it when the manifest moves the element. An agent that cannot read the
// definition finds it by place.
func TestLearnedValuesStayWithTheirElements(t *testing.T) {
	const ordered = "[{name: horn, beats: 3}, {name: tuba}]"
	app := newConcert(t, ordered)
	var none *plan.Cache
	cached, err := none.Of(app)
	check.Must(t, err)
	object := complete(t, cached, app, concertsBy(t, "name"))
	check.Must(t, object.Learn(map[string]any{"spec": map[string]any{"parts": []any{
		map[string]any{"name": "tuba", "beats": int64(4)}, map[string]any{"name": "horn", "beats": int64(3)},
	}}}))
	learned := object.Learned()
	for _, c := range []struct {
		parts string
		types *apitypes.Types
		want  string
	}{
		{ordered, concertsBy(t, "name"), "[{name: horn, beats: 3}, {name: tuba, beats: 4}]"},
		{ordered, nil, "[{name: horn, beats: 3}, {name: tuba, beats: 4}]"},
		{"[{name: tuba}, {name: horn, beats: 3}]", concertsBy(t, "name"), "[{name: tuba, beats: 4}, {name: horn, beats: 3}]"},
	} {
		app := newConcert(t, c.parts, learned)
		cached, err := none.Of(app)
		check.Must(t, err)
		want, err := manifest.Decode([]byte("{parts: " + c.want + "}"))
		check.Must(t, err)
		object := complete(t, cached, app, c.types)
		check.Equal(t, "desired", want[0].(map[string]any)["parts"], partsOf(object.Desired()))
	}
}

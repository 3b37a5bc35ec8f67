package reconcile_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

const (
	openService = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}"
	openSchema  = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {sessionAffinity: null, ports: [{port: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]}}"
)

// serving returns a world whose API server fills in the field that the schema leaves open.
func serving(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, openService, openSchema)
	w.answer = func(live map[string]any) {
		spec, _ := live["spec"].(map[string]any)
		if spec["sessionAffinity"] == nil {
			spec["sessionAffinity"] = "None"
		}
	}
	w.mustReconcile(t)
	w.forget()
	return w
}

// A value that was learned after the plan was made is desired from then on.
func TestPlanKnowsWhatWasLearned(t *testing.T) {
	w := serving(t)
	w.somebody(t, "somebody", "Service web", "ClientIP", "spec", "sessionAffinity")
	w.mustReconcile(t)
	w.checkTouches(t, "Patch Service web replace /spec/sessionAffinity")
	if got := w.objects["Service web"]["spec"].(map[string]any)["sessionAffinity"]; got != "None" {
		t.Errorf("sessionAffinity is %v, want what was learned", got)
	}
}

// Another replica, for example, may have learned another value.
func TestPlanKnowsWhatAnotherHasLearned(t *testing.T) {
	w := serving(t)
	w.mustReconcile(t)
	app := w.app(t)
	app.Learned[0]["spec"].(map[string]any)["sessionAffinity"] = "ClientIP"
	check.Must(t, app.Record(w.cm))
	w.cm.ResourceVersion = w.next()
	w.mustRest(t)
	w.checkTouches(t, "Patch Service web replace /spec/sessionAffinity")
}

// A change of the spec is carried out at once, and so is its reversal.
func TestPlanFollowsTheSpec(t *testing.T) {
	w := running(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: one}}", "")
	for _, value := range []string{"two", "one"} {
		w.forget()
		w.respec("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: "+value+"}}", "")
		w.mustReconcile(t)
		w.checkTouches(t, "Patch ConfigMap a replace /data/key")
	}
	w.forget()
	w.respec(w.cm.Data[application.ManifestKey], "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {}}")
	w.mustReconcile(t)
	w.somebody(t, "somebody", "ConfigMap a", "three", "data", "key")
	w.mustRest(t)
	w.checkTouches(t)
}

// Another Application of the same name gets a plan of its own: its marks contain its UID.
func TestPlanIsThatOfOneApplication(t *testing.T) {
	w := running(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "")
	w.cm.UID, w.cm.ResourceVersion = "another", w.next()
	w.mustRest(t)
	if got := (&unstructured.Unstructured{Object: w.objects["ConfigMap a"]}).GetAnnotations()[application.OwnerUIDAnnotation]; got != "another" {
		t.Errorf("the mark has the UID %q", got)
	}
}

// The target is asked again for a kind that it did not serve before.
func TestPlanIsWhereTheTargetServesIt(t *testing.T) {
	w := newWorld(t, "{apiVersion: example.com/v1, kind: Song, metadata: {name: a}}", "")
	served := w.Kinds
	w.Kinds = without{served, "Song"}
	if _, err := w.pass(t); err != nil {
		t.Log(err)
	}
	w.Kinds = served
	w.mustReconcile(t)
	if len(w.observed) != 1 || w.observed[0].Resource.Resource != "songs" {
		t.Errorf("observed: %+v", w.observed)
	}
	w.checkTouches(t, "Create Song a")
}

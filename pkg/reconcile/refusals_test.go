package reconcile_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// song returns a song with one mutable field, and one that may be immutable.
func song(fixed, free string) string {
	return fmt.Sprintf(`{apiVersion: example.com/v1, kind: Song, metadata: {name: aria}, spec: {fixed: %q, free: %q}}`, fixed, free)
}

func refuse(path ...string) error {
	var refused field.ErrorList
	if len(path) > 0 {
		refused = append(refused, field.Invalid(field.NewPath(path[0], path[1:]...), secret, "field is immutable: "+secret))
	}
	return apierrors.NewInvalid(gvr.GroupKind{Group: "example.com", Kind: "Song"}, "aria", refused)
}

// immutable returns the validation of an API server that accepts no change at the path.
func immutable(path ...string) func(before, after map[string]any) error {
	return func(before, after map[string]any) error {
		if before == nil {
			return nil
		}
		is, _, err := unstructured.NestedFieldNoCopy(before, path...)
		becomes, _, other := unstructured.NestedFieldNoCopy(after, path...)
		if err == nil && other == nil && cmp.Equal(is, becomes) {
			return nil
		}
		return refuse(path...)
	}
}

// checkRefusedRestart checks that a new agent tries as often as the first one, is refused, and
// writes nothing.
func (w *world) checkRefusedRestart(t *testing.T, most int) {
	t.Helper()
	w.restart()
	before := w.version
	w.forget()
	for range 2 {
		_, err := w.reconcile(t)
		check.Must(t, err)
	}
	if len(w.touches()) > most || w.version != before {
		t.Errorf("after a restart: %q, %d changes", w.writes(), w.version-before)
	}
}

// checkWaits checks that the next pass writes nothing, and that a later one is planned.
func (w *world) checkWaits(t *testing.T) {
	t.Helper()
	result, err := w.pass(t)
	if err != nil || result.RequeueAfter <= 0 {
		t.Fatalf("result %+v, error %v", result, err)
	}
	w.checkCalls(t, "Observe", "Start")
}

// unlessRecreated is the advice for an immutable field.
const unlessRecreated = ": undo the change in the Application, or delete the object: the agent creates it again"

// An immutable field stays unchanged, and the others are repaired, in at most three tries.
func TestAnImmutableField(t *testing.T) {
	const message = "example.com/v1 Song demo/aria: spec.fixed: Invalid: Song aria: spec.fixed: Invalid value" + unlessRecreated
	w := running(t, song("1", "1"), "")
	w.admit = immutable("spec", "fixed")
	w.respec(song("2", "2"), "")
	w.checkPass(t,
		"Patch Song aria replace /spec/fixed replace /spec/free",
		"Patch Song aria replace /spec/free",
	)
	w.checkReconciled(t, application.StateFailed, "Invalid", message)
	w.checkCondition(t, application.StalledCondition, "Invalid", "example.com/v1 Song demo/aria: spec.fixed")
	w.checkCondition(t, application.DriftedCondition, "Invalid", "example.com/v1 Song demo/aria: spec.fixed")
	w.checkWaits(t)
	w.checkRefusedRestart(t, 1)

	w.somebody(t, "somebody", "Song aria", "3", "spec", "fixed")
	w.checkPass(t, "Patch Song aria replace /spec/fixed") // another value, another try
	w.checkWaits(t)

	w.respec(song("4", "2"), "")
	w.checkPass(t, "Patch Song aria replace /spec/fixed")
	w.checkWaits(t)

	w.respec(song("3", "2"), "") // as on the server
	w.checkLastPass(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
}

// A refusal that names no field, or none that we write, covers the whole patch if no dry run passes.
func TestARefusalWithoutFields(t *testing.T) {
	cases := []struct {
		name string
		err  error
	}{
		{"no causes", refuse()},
		{"a field that nobody wrote", refuse("spec", "elsewhere")},
		{"no details at all", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: secret, Code: 422}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, song("1", "1"), "")
			w.admit = func(_, _ map[string]any) error { return c.err }
			w.respec(song("2", "2"), "")
			w.checkPass(t, "Patch Song aria replace /spec/fixed replace /spec/free")
			check.Equal(t, "dry runs", []string{"TryPatch Song aria replace /spec/fixed", "TryPatch Song aria replace /spec/free"}, w.callsOf("TryPatch"))
			w.checkReason(t, application.ReconciledCondition, "Invalid")
			w.checkWaits(t)
			w.checkRefusedRestart(t, 1)
		})
	}
}

const observedService = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: null, ipFamilyPolicy: null, ports: [{port: null, nodePort: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]}
`

func service(kind, policy string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: %s, ipFamilyPolicy: %s, ports: [{port: 80}]}}`, kind, policy)
}

// noNodePorts is the validation of an API server that refuses the node port of a ClusterIP.
func noNodePorts(_, after map[string]any) error {
	kind, _, _ := unstructured.NestedString(after, "spec", "type")
	ports, _, _ := unstructured.NestedSlice(after, "spec", "ports")
	if kind != "ClusterIP" || cmp.Equal(ports, []any{map[string]any{"port": int64(80)}}) {
		return nil
	}
	return apierrors.NewInvalid(gvr.GroupKind{Kind: "Service"}, "web", field.ErrorList{
		field.Forbidden(field.NewPath("spec", "ports").Index(0).Child("nodePort"), "may not be used when `type` is 'ClusterIP'"),
	})
}

// A learned value that the API server refuses is forgotten: a NodePort becomes a ClusterIP in
// one pass.
func TestARefusedLearnedValue(t *testing.T) {
	cases := []struct {
		name, policy string
		most         int
		reason       string
		want         string
	}{
		{"nothing else is in the way", "SingleStack", 2, "Reconciled", "SingleStack"},
		{"nor is it held up by a field that cannot be changed", "PreferDualStack", 3, "Invalid", "SingleStack"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, service("NodePort", "SingleStack"), observedService)
			w.answer = writes([]any{map[string]any{"port": int64(80), "nodePort": int64(31000)}}, "spec", "ports")
			w.mustReconcile(t)
			w.answer = func(map[string]any) {}
			w.checkQuiet(t)

			w.admit = func(before, after map[string]any) error {
				if err := noNodePorts(before, after); err != nil {
					return err
				}
				return immutable("spec", "ipFamilyPolicy")(before, after)
			}
			w.respec(service("ClusterIP", c.policy), observedService)
			w.mustPass(t)
			checkRange(t, "writes to the target", 0, c.most, len(w.touches()))
			w.checkReason(t, application.ReconciledCondition, c.reason)
			want := map[string]any{"type": "ClusterIP", "ipFamilyPolicy": c.want, "ports": []any{map[string]any{"port": int64(80)}}}
			check.Equal[any](t, "spec of the object", want, w.objects["Service web"]["spec"])
			w.checkNothingLearned(t)
			w.mustPass(t)
			w.checkCalls(t, "Observe", "Start")
			w.checkRefusedRestart(t, 1)
		})
	}
}

// namedPorts is an API server's validation of Service ports: several ports need names, each
// its own.
func namedPorts(_, after map[string]any) error {
	ports, _, err := unstructured.NestedSlice(after, "spec", "ports")
	names := map[string]bool{}
	for _, port := range ports {
		name, _, _ := unstructured.NestedString(port.(map[string]any), "name")
		if err != nil || len(ports) > 1 && (name == "" || names[name]) {
			return refuse("spec", "ports")
		}
		names[name] = true
	}
	return nil
}

// Another client changes the number of an observed port. Several ports are allowed, but the
// API server refuses the manifest's port beside it.
func TestAnElementThatIsRefusedBesideAnother(t *testing.T) {
	const bounds = "{observer_schema_list_min_length: 1, observer_schema_list_max_length: 4}"
	cases := []struct {
		name, ports, schema, theirs string
		first, patch, want          string
	}{
		{"without names", "[{port: 80}]", "[{port: null}, " + bounds + "]", "[{port: 8080, nodePort: 30000}]",
			"add /spec/ports/1", "remove /spec/ports/0 add /spec/ports/0", "[{port: 80}]"},
		{"where one more is learned", "[{port: 80}]", "[{port: null}, {port: null}, " + bounds + "]", "[{port: 8080}]",
			"add /spec/ports/1", "remove /spec/ports/0 add /spec/ports/0", "[{port: 80}]"},
		{"of the same name, beside others", "[{name: http, port: 80}]", "[{name: null, port: null}, " + bounds + "]", "[{name: metrics, port: 9090}, {name: http, port: 8080}]",
			"add /spec/ports/2", "remove /spec/ports/1 add /spec/ports/1", "[{name: metrics, port: 9090}, {name: http, port: 80}]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			const service = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: %s}}"
			w := running(t, fmt.Sprintf(service, c.ports), fmt.Sprintf(service, c.schema))
			w.admit = namedPorts
			w.somebody(t, "somebody", "Service web", listOf(t, c.theirs), "spec", "ports")
			w.checkLastPass(t, "Patch Service web "+c.first, "Patch Service web "+c.patch)
			check.Equal[any](t, "ports", listOf(t, c.want), w.objects["Service web"]["spec"].(map[string]any)["ports"])
			w.checkReady(t, application.StateRunning, "Ready", ready)
			w.checkQuiet(t)
		})
	}
}

// If that is refused, too, no element is removed, and the refusal is reported like any other.
func TestAnElementThatIsRefusedAnyway(t *testing.T) {
	const service = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: %s}}"
	w := running(t, fmt.Sprintf(service, "[{port: 80}]"), fmt.Sprintf(service, "[{port: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 4}]"))
	w.admit = func(map[string]any, map[string]any) error { return refuse("spec", "ports") }
	w.somebody(t, "somebody", "Service web", listOf(t, "[{port: 8080}]"), "spec", "ports")
	w.checkPass(t, "Patch Service web add /spec/ports/1", "Patch Service web remove /spec/ports/0 add /spec/ports/0")
	w.checkReason(t, application.StalledCondition, "Invalid")
	w.checkWaits(t)
}

func listOf(t *testing.T, text string) []any {
	t.Helper()
	values, err := manifest.Decode([]byte(text))
	check.Must(t, err)
	return values
}

package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// lacks returns an error of a Deployment at the field.
func lacks(at string) error {
	return apierrors.NewInvalid(gvr.GroupKind{Group: "apps", Kind: "Deployment"}, "db", field.ErrorList{
		{Type: field.ErrorTypeForbidden, Field: at, Detail: "may not be specified"},
	})
}

// excludes is the validation of an API server that does not accept both fields, and names one. A
// value that is not empty counts as set, but for those of a type.
func excludes(path, other string, names string) func(before, after map[string]any) error {
	return func(_, after map[string]any) error {
		is := func(path string) bool {
			path, want, hasWant := strings.Cut(path, "=")
			value := schema.ValueAt(after, schema.MustParsePath(path))
			return value != nil && (!hasWant || value == want)
		}
		if is(path) && is(other) {
			return lacks(names)
		}
		return nil
	}
}

const database = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec:
  strategy: {type: Recreate}
  template:
    spec:
      containers:
      - name: db
        image: postgres:16
        env:
        - {name: PLAIN, value: a}
        - {name: KEPT, valueFrom: {secretKeyRef: {name: s, key: k}}}
        livenessProbe: {httpGet: {path: /, port: 80}}
        lifecycle: {preStop: {exec: {command: [sleep, "3"]}}}
      volumes:
      - {name: conf, configMap: {name: c}}
`

const container = "spec.template.spec.containers[0]"

// put sets a field of an object as another client, or removes it.
func put(t *testing.T, live map[string]any, path string, value any) {
	t.Helper()
	steps := schema.MustParsePath(path)
	last := steps[len(steps)-1]
	parent, ok := schema.ValueAt(live, steps[:len(steps)-1]).(map[string]any)
	if !ok {
		t.Fatalf("there is nothing around %s", path)
	}
	if parent[last.Field] = value; value == nil {
		delete(parent, last.Field)
	}
}

// A value that is not observed goes if the API server accepts the desired one only without it, and
// the same drift of another field is repaired in the same patch.
func TestAValueThatExcludesADesiredOneGoes(t *testing.T) {
	image := container + ".image"
	cases := []struct {
		name    string
		drift   map[string]any
		admit   func(before, after map[string]any) error
		removed string
	}{
		{"a strategy", map[string]any{"spec.strategy.type": "RollingUpdate", "spec.strategy.rollingUpdate": map[string]any{"maxSurge": int64(1)}},
			excludes("spec.strategy.type=Recreate", "spec.strategy.rollingUpdate", "spec.strategy.rollingUpdate"), "spec.strategy.rollingUpdate"},
		{"a source of a volume", map[string]any{"spec.template.spec.volumes[0].configMap": nil, "spec.template.spec.volumes[0].emptyDir": map[string]any{"medium": "Memory"}},
			excludes("spec.template.spec.volumes[0].configMap", "spec.template.spec.volumes[0].emptyDir", "spec.template.spec.volumes[0].configMap"),
			"spec.template.spec.volumes[0].emptyDir"},
		{"a value of a variable", map[string]any{container + ".env[1].valueFrom": nil, container + ".env[1].value": "plain"},
			excludes(container+".env[1].value", container+".env[1].valueFrom", container+".env[1].valueFrom"), container + ".env[1].value"},
	}
	for _, c := range cases {
		for _, names := range []string{"named", "unnamed"} {
			if names == "unnamed" && c.name == "a strategy" {
				continue // the agent does not know which types exclude it
			}
			t.Run(c.name+" "+names, func(t *testing.T) {
				w := running(t, database, "")
				want := w.objects["Deployment db"]["spec"]
				want = (&unstructured.Unstructured{Object: map[string]any{"spec": want}}).DeepCopy().Object["spec"]
				w.admit = c.admit
				if names == "unnamed" {
					w.admit = func(before, after map[string]any) error {
						if c.admit(before, after) != nil {
							return lacks("")
						}
						return nil
					}
				}
				w.change(t, "Deployment db", func(live *unstructured.Unstructured) {
					for path, value := range c.drift {
						put(t, live.Object, path, value)
					}
					put(t, live.Object, image, "evil")
					put(t, live.Object, "spec.paused", true) // it is not observed
				})
				w.mustReconcile(t)
				check.Equal(t, "patches", 2, len(w.touches()))
				put(t, map[string]any{"spec": want}, "spec.paused", true)
				check.Equal(t, "spec of the object", want, w.objects["Deployment db"]["spec"])
				w.checkReady(t, application.StateRunning, "Ready", ready)
				told := "; removed " + c.removed + ", which cannot stand beside a desired value"
				if len(w.reports) != 1 || !strings.Contains(w.reports[0], told) {
					t.Errorf("reported: %q, want %q", w.reports, told)
				}
				fields := w.app(t).Status.Drifts[0].Fields
				if !slices.ContainsFunc(fields, func(f application.DriftedField) bool { return f.Removed && f.Path == c.removed }) {
					t.Errorf("the history has %v", fields)
				}
				checkRange(t, "dry runs", 0, 16, len(w.callsOf("TryPatch")))
				w.checkQuiet(t)
			})
		}
	}
}

// No other value that is not observed ever goes, whatever an API server says of it.
func TestNoOtherValueGoes(t *testing.T) {
	// The competing writer sets three fields that are not observed.
	drift := map[string]any{
		"spec.strategy.rollingUpdate": map[string]any{"maxSurge": int64(1)}, "spec.paused": true, "metadata.finalizers": []any{"example.org/a"},
		container + ".image": "evil", "spec.strategy.type": "RollingUpdate",
	}
	cases := []struct {
		name  string
		admit func(before, after map[string]any) error
		image string
	}{
		{"one that is invalid with or without the repair", func(_, _ map[string]any) error { return lacks("spec.strategy.rollingUpdate") }, "evil"},
		{"one that is somewhere else", excludes("spec.strategy.type=Recreate", "spec.paused", "spec.paused"), "postgres:16"},
		{"one in the metadata", excludes("spec.strategy.type=Recreate", "metadata.finalizers", "metadata.finalizers"), "postgres:16"},
		{"one that does not help", func(_, after map[string]any) error {
			if schema.ValueAt(after, schema.MustParsePath("spec.strategy.type")) == "Recreate" {
				return lacks("spec.strategy.rollingUpdate")
			}
			return nil
		}, "postgres:16"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := running(t, database, "")
			w.admit = c.admit
			w.change(t, "Deployment db", func(live *unstructured.Unstructured) {
				for path, value := range drift {
					put(t, live.Object, path, value)
				}
			})
			w.mustPass(t)
			live := w.objects["Deployment db"]
			for _, path := range []string{"spec.strategy.rollingUpdate", "spec.paused", "metadata.finalizers"} {
				check.Equal(t, path+" is gone", false, schema.ValueAt(live, schema.MustParsePath(path)) == nil)
			}
			check.Equal[any](t, "image", c.image, schema.ValueAt(live, schema.MustParsePath(container+".image")))
			w.checkReason(t, application.StalledCondition, "Invalid")
			w.checkWaits(t)
		})
	}
}

// The status names the field that is in the way, and who has set it.
func TestAnObstacleIsTold(t *testing.T) {
	w := running(t, song("1", "1"), "")
	w.admit = func(_, after map[string]any) error {
		if schema.ValueAt(after, schema.MustParsePath("spec.free")) == "1" && schema.ValueAt(after, schema.MustParsePath("status2.lock")) != nil {
			return apierrors.NewInvalid(gvr.GroupKind{Group: "example.com", Kind: "Song"}, "aria", field.ErrorList{
				field.Forbidden(field.NewPath("status2", "lock"), "no change while it is set"),
			})
		}
		return nil
	}
	w.change(t, "Song aria", func(live *unstructured.Unstructured) { put(t, live.Object, "spec.free", "theirs") })
	w.somebody(t, "locksmith", "Song aria", "on", "status2", "lock")
	w.mustPass(t)
	w.checkCondition(t, application.ReconciledCondition, "Invalid", "example.com/v1 Song demo/aria: spec.free: Invalid: Song aria: status2.lock: Forbidden: "+
		"status2.lock of the object is in the way, which the Application does not observe and locksmith has set: remove it there, or observe it")

	// As soon as it is gone, the field is repaired.
	w.change(t, "Song aria", func(live *unstructured.Unstructured) { delete(live.Object, "status2") })
	w.checkLastPass(t, "Patch Song aria replace /spec/free")
	w.checkReady(t, application.StateRunning, "Ready", ready)
}

// A refused field is tried again whenever something changes that may be the cause, and after pauses
// that grow up to five minutes.
func TestARefusedFieldIsTriedAgain(t *testing.T) {
	causes := map[string]func(t *testing.T, w *world){
		"the object": func(t *testing.T, w *world) {
			w.change(t, "Song aria", func(live *unstructured.Unstructured) { put(t, live.Object, "spec.other", "x") })
		},
		"an annotation of the Application": func(_ *testing.T, w *world) { w.annotate("note", "again") },
		"the definition of the kind":       func(_ *testing.T, w *world) { w.redefinitions++ },
		"the time":                         func(_ *testing.T, w *world) { w.now = w.now.Add(10 * time.Second) },
	}
	for name, change := range causes {
		t.Run(name, func(t *testing.T) {
			w := running(t, song("1", "1"), "")
			w.admit = immutable("spec", "fixed")
			w.somebody(t, "somebody", "Song aria", "theirs", "spec", "fixed")
			w.mustPass(t)
			w.checkWaits(t)
			change(t, w)
			w.checkPass(t, "Patch Song aria replace /spec/fixed")
			w.checkReason(t, application.ContendedCondition, "NoCompetingWriter")
			w.checkWaits(t)
			w.admit = func(_, _ map[string]any) error { return nil }
			w.now = w.now.Add(time.Minute)
			w.checkLastPass(t, "Patch Song aria replace /spec/fixed")
			w.checkReady(t, application.StateRunning, "Ready", ready)
		})
	}
	t.Run("a status that changes is no cause", func(t *testing.T) {
		w := running(t, song("1", "1"), "")
		w.admit = immutable("spec", "fixed")
		w.somebody(t, "somebody", "Song aria", "theirs", "spec", "fixed")
		w.mustPass(t)
		w.change(t, "Song aria", func(live *unstructured.Unstructured) { live.Object["status"] = map[string]any{"heard": int64(1)} })
		w.checkWaits(t)
	})
}

// Another client changes the object between a refusal and the next patch. The refused field is tried once more, because the change
// may be the cause, and the pass ends.
func TestAnObjectThatChangesBetweenRefusals(t *testing.T) {
	for name, refuses := range map[string]func(before, after map[string]any) error{
		"the refusal names the field": immutable("spec", "fixed"),
		"it names none": func(before, after map[string]any) error {
			if immutable("spec", "fixed")(before, after) != nil {
				return refuse()
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, song("1", "1"), "")
			w.somebody(t, "somebody", "Song aria", "theirs", "spec", "fixed")
			w.somebody(t, "somebody", "Song aria", "theirs", "spec", "free")
			others := 0
			w.admit = func(before, after map[string]any) error {
				err := refuses(before, after)
				if err != nil && others < 3 {
					others++
					w.change(t, "Song aria", func(live *unstructured.Unstructured) { put(t, live.Object, "spec.other", int64(others)) })
				}
				return err
			}
			w.mustPass(t)
			checkRange(t, "patches in one pass", 0, 8, len(w.callsOf("Patch")))
			check.Equal[any](t, "free", "1", schema.ValueAt(w.objects["Song aria"], schema.MustParsePath("spec.free")))
			check.Equal[any](t, "fixed", "theirs", schema.ValueAt(w.objects["Song aria"], schema.MustParsePath("spec.fixed")))
			w.checkWaits(t)
		})
	}
}

// What admission refuses shields no other field either. A missing right refuses the whole patch.
func TestARefusalByAdmission(t *testing.T) {
	denied := func(message string) error {
		err := apierrors.NewForbidden(gvr.GroupResource{Group: "example.com", Resource: "songs"}, "aria", errors.New("x"))
		err.ErrStatus.Message = message
		return err
	}
	t.Run("a webhook", func(t *testing.T) {
		w := running(t, song("1", "1"), "")
		w.admit = func(_, after map[string]any) error {
			if schema.ValueAt(after, schema.MustParsePath("spec.fixed")) == "1" {
				return denied(`admission webhook "a.example.org" denied the request: ` + secret)
			}
			return nil
		}
		w.somebody(t, "somebody", "Song aria", "theirs", "spec", "fixed")
		w.somebody(t, "somebody", "Song aria", "theirs", "spec", "free")
		w.mustPass(t)
		check.Equal[any](t, "free", "1", schema.ValueAt(w.objects["Song aria"], schema.MustParsePath("spec.free")))
		w.checkReason(t, application.ReconciledCondition, "Forbidden")
		if text := w.app(t).Status.Objects[0].Message; strings.Contains(text, secret) || strings.Contains(text, "grant the permission") {
			t.Errorf("the status says %q", text)
		}
		w.checkWaits(t)
	})
	t.Run("a missing right", func(t *testing.T) {
		w := running(t, song("1", "1"), "")
		w.admit = func(_, _ map[string]any) error {
			return denied(`songs.example.com "aria" is forbidden: User "x" cannot patch resource "songs"`)
		}
		w.somebody(t, "somebody", "Song aria", "theirs", "spec", "free")
		w.mustFail(t)
		check.Equal(t, "dry runs", 0, len(w.callsOf("TryPatch")))
	})
}

// A learned value that the API server refuses at the creation is forgotten, whether it names the
// value or not: the manifest does not ask for it.
func TestALearnedValueThatIsTaken(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprint("named ", named), func(t *testing.T) {
			w := newWorld(t, service("NodePort", "SingleStack"), observedService)
			w.answer = writes([]any{map[string]any{"port": int64(80), "nodePort": int64(31000)}}, "spec", "ports")
			w.mustReconcile(t)
			w.vanish("Service web")
			w.answer = writes([]any{map[string]any{"port": int64(80), "nodePort": int64(31001)}}, "spec", "ports")
			w.admit = func(_, after map[string]any) error {
				if schema.ValueAt(after, schema.MustParsePath("spec.ports[0].nodePort")) != int64(31000) {
					return nil
				}
				path := field.NewPath("spec", "elsewhere")
				if named {
					path = field.NewPath("spec", "ports").Index(0).Child("nodePort")
				}
				return apierrors.NewInvalid(gvr.GroupKind{Kind: "Service"}, "web", field.ErrorList{field.Invalid(path, 31000, "provided port is already allocated")})
			}
			w.checkLastPass(t, "Create Service web", "Create Service web")
			w.checkReady(t, application.StateRunning, "Ready", ready)
			w.answer = func(map[string]any) {}
			w.checkQuiet(t)
			w.somebody(t, "somebody", "Service web", listOf(t, "[{port: 80, nodePort: 31002}]"), "spec", "ports")
			w.checkLastPass(t, "Patch Service web replace /spec/ports/0/nodePort") // the new value was learned
		})
	}
}

// Whatever an API server refuses, one repair makes at most sixteen dry runs, and repairs what it can.
func TestManyDifferences(t *testing.T) {
	var fields, drifted []string
	for i := range 40 {
		fields, drifted = append(fields, fmt.Sprintf("f%02d: a", i)), append(drifted, fmt.Sprintf("f%02d: theirs", i))
	}
	text := "{apiVersion: example.com/v1, kind: Song, metadata: {name: aria}, spec: {" + strings.Join(fields, ", ") + "}}"
	w := running(t, text, "")
	w.admit = func(_, after map[string]any) error {
		for _, bad := range []string{"spec.f07", "spec.f31"} {
			if schema.ValueAt(after, schema.MustParsePath(bad)) == "a" {
				return refuse("spec", "elsewhere")
			}
		}
		return nil
	}
	w.change(t, "Song aria", func(live *unstructured.Unstructured) {
		values, err := manifest.Decode([]byte("{" + strings.Join(drifted, ", ") + "}"))
		check.Must(t, err)
		live.Object["spec"] = values[0]
	})
	w.mustPass(t)
	checkRange(t, "dry runs", 0, 16, len(w.callsOf("TryPatch")))
	repaired := 0
	for _, value := range w.objects["Song aria"]["spec"].(map[string]any) {
		if value == "a" {
			repaired++
		}
	}
	checkRange(t, "repaired fields", 30, 38, repaired)
}

// An API server that cannot make dry runs, as with some webhooks, costs only the repair of what it
// does not name.
func TestWithoutDryRuns(t *testing.T) {
	w := running(t, song("1", "1"), "")
	w.admit = func(_, _ map[string]any) error { return refuse() }
	w.failures["TryPatch Song aria replace /spec/fixed"] = apierrors.NewBadRequest("admission webhook \"a\" does not support dry run")
	w.respec(song("2", "2"), "")
	w.checkPass(t, "Patch Song aria replace /spec/fixed replace /spec/free")
	w.checkReason(t, application.StalledCondition, "Invalid")
	w.checkWaits(t)
}

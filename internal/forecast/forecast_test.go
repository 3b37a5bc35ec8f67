package forecast_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/internal/forecast"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const (
	deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, template: {spec: {
containers: [{name: web, image: "nginx:1.27", env: [{name: A, value: hunter2}]}, {name: log, image: "log:1"}]}}}}`
	sealed = `{apiVersion: v1, kind: Secret, metadata: {name: web, labels: {tier: hunter2}}}`
	config = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {greeting: hunter2}}`
	song   = `{apiVersion: example.com/v1, kind: Song, metadata: {name: web}, spec: {verses: [one, two, three], muted: false, tempo: 1.5,
key: {of: D, minor: true, notes: [d, f, a]}, about: "two\nlines", long: "` + long + `", data: [{name: hunter2, pitch: 1}], parts: [{name: "line\nbreak", pitch: 1}]}}`
	long = "0123456789012345678901234567890123456789012345678901234567890123456789"
)

// subject is an Application, and its only object as the agent creates it.
type subject struct {
	app    *application.Application
	object plan.Object
	live   map[string]any
}

func newSubject(t testing.TB, manifestText string) subject {
	t.Helper()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "app-uid", Annotations: map[string]string{application.FormatAnnotation: application.Format}},
		Data:       map[string]string{application.ManifestKey: manifestText},
	}
	check.Must(t, mutate.PrepareForCreate(t.Context().Err, cm).Refusals.ToAggregate())
	app, err := application.Read(cm)
	check.Must(t, err)
	var none *plan.Cache
	cached, err := none.Of(app)
	check.Must(t, err)
	id, err := manifest.Identify(cached.Drafts()[0].Manifest())
	check.Must(t, err)
	id.Namespace = app.Namespace
	object, found, err := cached.Find(app, manifest.Ref{ID: id}, app.Namespace, plan.NoTypes)
	check.Must(t, err)
	check.Equal(t, "the plan has "+id.String(), true, found)
	return subject{app, object, object.Body()}
}

// edit changes a live object.
type edit func(live map[string]any)

// edited returns a copy of the live object after the edits.
func (s subject) edited(edits []edit) map[string]any {
	live := runtime.DeepCopyJSON(s.live)
	for _, change := range edits {
		change(live)
	}
	return live
}

func set(value any, fields ...string) edit {
	return func(live map[string]any) {
		if err := unstructured.SetNestedField(live, value, fields...); err != nil {
			panic(err) // a mistake in the test
		}
	}
}

func unset(fields ...string) edit {
	return func(live map[string]any) { unstructured.RemoveNestedField(live, fields...) }
}

func annotated(name, value string) edit { return set(value, "metadata", "annotations", name) }

// containers changes the list of containers.
func containers(change func([]any) []any) edit {
	return func(live map[string]any) {
		list, _, _ := unstructured.NestedSlice(live, "spec", "template", "spec", "containers")
		set(change(list), "spec", "template", "spec", "containers")(live)
	}
}

// image sets the image of a container.
func image(name, value string) edit {
	return containers(func(list []any) []any {
		for _, container := range list {
			if fields, _ := container.(map[string]any); fields["name"] == name {
				fields["image"] = value
			}
		}
		return list
	})
}

// env sets the environment variable of the first container.
func env(value string) edit {
	return containers(func(list []any) []any {
		web, _ := list[0].(map[string]any)
		web["env"] = []any{map[string]any{"name": "A", "value": value}}
		return list
	})
}

func sidecar(at int) edit {
	return containers(func(list []any) []any {
		return slices.Insert(list, at, any(map[string]any{"name": "sidecar", "image": "sidecar:1"}))
	})
}

func without(at int) edit {
	return containers(func(list []any) []any { return slices.Delete(list, at, at+1) })
}

// wish changes the settings or the status of an Application.
type wish func(app *application.Application)

func hour(n int) string { return noon.Add(time.Duration(n) * time.Hour).Format(time.RFC3339) }

func refused(reason string, fields ...string) wish {
	return func(app *application.Application) {
		id := manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
		app.Status.Objects = []application.ObjectStatus{{ID: id, Reason: reason, Fields: fields}}
		app.Status.ObservedSpec = app.Spec.Digest()
	}
}

// held records a hold that began before noon.
func held(asked string, until int) wish {
	return func(app *application.Application) {
		refused("")(app)
		app.Status.Objects[0].Hold = &application.Hold{
			Asked: asked, Until: metav1.NewTime(noon.Add(time.Duration(until) * time.Hour)), Since: metav1.NewTime(noon.Add(-time.Hour)),
		}
	}
}

func mode(mode application.Mode) wish {
	return func(app *application.Application) { app.Settings.Mode = mode }
}

func TestOnlyWhatARequestMakesWorseIsUndone(t *testing.T) {
	const list = "spec.template.spec.containers"
	const ownedBy, owner = `Changed metadata.labels["krake.dev/owned-by"]`, `Changed metadata.annotations["krake.dev/owner"]`
	three := []edit{set(int64(7), "spec", "replicas")}
	cases := []struct {
		name, manifest string
		before, after  []edit
		wish           wish
		want           []string
	}{
		{"nothing", deployment, nil, nil, nil, nil},
		{"a scalar", deployment, nil, three, nil, []string{"Changed spec.replicas"}},
		{"a scalar that is removed", deployment, nil, []edit{unset("spec", "replicas")}, nil, []string{"Changed spec.replicas"}},
		{"a field that no manifest has", deployment, nil, []edit{set(true, "spec", "paused")}, nil, nil},
		{"a private value of a Secret", sealed, nil, []edit{set("x", "metadata", "labels", "tier")}, nil, []string{"Changed metadata.labels.tier"}},
		{"a private value of a container", deployment, nil, []edit{env("x")}, nil, []string{"Changed " + list + "[0].env[0].value"}},
		{"a private value of a ConfigMap", config, nil, []edit{set("x", "data", "greeting")}, nil, []string{"Changed data.greeting"}},

		{"an element more", deployment, nil, []edit{sidecar(2)}, nil, []string{"TooLong " + list}},
		{"an element less", deployment, nil, []edit{without(1)}, nil, []string{"TooShort " + list}},
		{"another element in the place of one", deployment, nil, []edit{without(1), sidecar(1)}, nil, []string{"TooShort " + list}},
		{"a changed element", deployment, nil, []edit{image("log", "log:2")}, nil, []string{"Changed " + list + "[1].image"}},
		{"elements with keys in another order", deployment, nil, []edit{containers(reversed)}, nil, []string{"Moved " + list}},
		{"elements without keys in another order", song, nil, []edit{set([]any{"three", "two", "one"}, "spec", "verses")}, nil, []string{"Moved spec.verses"}},

		{"half of a drift is repaired", deployment, []edit{set(int64(7), "spec", "replicas"), image("web", "nginx:1")}, three, nil, nil},
		{"all of it is", deployment, three, nil, nil, nil},
		{"one of two surplus elements is removed", deployment, []edit{sidecar(0), sidecar(1)}, []edit{sidecar(0)}, nil, nil},
		{"one of two missing elements comes back", deployment, []edit{without(0), without(0)}, []edit{without(0)}, nil, nil},
		{"one field of a missing object comes back", song, []edit{unset("spec", "key")}, []edit{set(map[string]any{"of": "D"}, "spec", "key")}, nil, nil},
		{"it comes back with another value", song, []edit{unset("spec", "key")}, []edit{set(map[string]any{"of": "E"}, "spec", "key")}, nil, []string{"Changed spec.key.of"}},
		{"a list in it comes back in part", song, []edit{unset("spec", "key")}, []edit{set([]any{"d"}, "spec", "key", "notes")}, nil, nil},
		{"what is left of an object is removed", song, []edit{unset("spec", "key", "of")}, []edit{unset("spec", "key")}, nil, []string{"Changed spec.key"}},

		{"a drift gets another wrong value", deployment, three, []edit{set(int64(8), "spec", "replicas")}, nil, []string{"Changed spec.replicas"}},
		{"a drift of another field", deployment, three, []edit{set(int64(7), "spec", "replicas"), image("web", "nginx:1")}, nil, []string{"Changed " + list + "[0].image"}},
		{"a drift whose element moves", deployment, []edit{image("log", "log:2")}, []edit{image("log", "log:2"), sidecar(0)}, nil, []string{"TooLong " + list}},
		{"the same drift in another element", deployment, []edit{image("web", "x")}, []edit{image("log", "x")}, nil, []string{"Changed " + list + "[1].image"}},
		{"an element less beside one that is missing", deployment, []edit{without(1)}, []edit{without(0), without(0)}, nil, []string{"TooShort " + list}},
		{"an element more beside a surplus one", deployment, []edit{sidecar(0)}, []edit{sidecar(0), sidecar(1)}, nil, []string{"TooLong " + list}},

		{"a hold that the same request sets", deployment, nil, append(three, annotated(application.HoldUntilAnnotation, hour(1))), nil, nil},
		{"a hold that is over", deployment, nil, append(three, annotated(application.HoldUntilAnnotation, hour(-1))), nil, []string{"Changed spec.replicas"}},
		{"a hold that nothing reads", deployment, nil, append(three, annotated(application.HoldUntilAnnotation, "tomorrow")), nil, []string{"Changed spec.replicas"}},
		{"a hold that the same request ends", deployment, []edit{annotated(application.HoldUntilAnnotation, hour(1))}, three, held(hour(1), 1), []string{"Changed spec.replicas"}},
		{"a hold that has reached its limit", deployment, nil, append(three, annotated(application.HoldUntilAnnotation, hour(3))), held(hour(3), 0), []string{"Changed spec.replicas"}},
		{"a hold of the Application", deployment, nil, three, func(app *application.Application) { app.Settings.HoldUntil = noon.Add(time.Minute) }, nil},
		{"a hold of the Application that is over", deployment, nil, three, func(app *application.Application) { app.Settings.HoldUntil = noon }, []string{"Changed spec.replicas"}},
		{"holds of objects are denied", deployment, nil, append(three, annotated(application.HoldUntilAnnotation, hour(1))),
			func(app *application.Application) { app.Settings.DenyHolds = true }, []string{"Changed spec.replicas"}},

		{"mode observe", deployment, nil, three, mode(application.Observe), nil},
		{"mode suspend", deployment, nil, three, mode(application.Suspend), nil},
		{"the Application is being deleted", deployment, nil, three, func(app *application.Application) { app.Deleted = true }, nil},
		{"the object is being deleted", deployment, nil, append(three, set("2026-01-02T12:00:00Z", "metadata", "deletionTimestamp")), nil, nil},
		{"a field that the API server refuses", deployment, nil, append(three, image("web", "x")), refused(status.Invalid, "spec.replicas"), []string{"Changed " + list + "[0].image"}},
		{"a field that differs for another reason", deployment, nil, three, refused(status.Held, "spec.replicas"), []string{"Changed spec.replicas"}},

		{"a field that the API server has refused in another spec", deployment, nil, three, func(app *application.Application) {
			refused(status.Invalid, "spec.replicas")(app)
			app.Status.ObservedSpec = "another"
		}, []string{"Changed spec.replicas"}},
		{"a refused field of an element that has moved", deployment, nil, []edit{containers(reversed), image("log", "x")},
			refused(status.Invalid, list+"[1].image"), []string{"Moved " + list}},
		{"an object that the agent may not write", deployment, nil, three, refused(status.Forbidden), nil},
		{"a spec that the agent refuses", deployment, nil, three, refused(status.Refused), nil},
		{"an account that does not exist", deployment, nil, three, refused(status.NoAccount), nil},

		{"a mark is removed", deployment, nil, []edit{unset("metadata", "labels", application.OwnedByLabel)}, nil, []string{ownedBy}},
		{"a mark is changed while the object is held", deployment, nil,
			append(three, set("x", "metadata", "labels", application.OwnedByLabel), annotated(application.HoldUntilAnnotation, hour(1))), nil, []string{ownedBy}},
		{"the name of the owner is removed", deployment, nil, []edit{unset("metadata", "annotations", application.OwnerAnnotation)}, nil, []string{owner}},
		{"marks of another owner", deployment, nil, append(three, annotated(application.OwnerAnnotation, "shop/other apps/Deployment/shop/web")), nil, []string{owner, "Changed spec.replicas"}},
		{"the object is of another owner", deployment, []edit{annotated(application.OwnerAnnotation, "shop/other apps/Deployment/shop/web")}, three, nil, nil},
		{"a copy of the marks of another object", deployment, []edit{annotated(application.OwnerAnnotation, "shop/web apps/Deployment/shop/other")}, three, nil, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newSubject(t, c.manifest)
			if c.wish != nil {
				c.wish(s.app)
			}
			before, after := s.edited(c.before), s.edited(c.after)
			kept := [2]map[string]any{runtime.DeepCopyJSON(before), runtime.DeepCopyJSON(after)}
			undone := forecast.Undone(s.app, &s.object, before, after, forecast.Setting{Now: noon, MaxHold: 4 * time.Hour})
			var got []string
			for _, d := range undone {
				got = append(got, string(d.Kind)+" "+d.Path.String())
				if text := forecast.TextOf(s.app, s.object.ID, d, after); strings.Contains(text, "hunter2") {
					t.Errorf("the text has a private value: %s", text)
				}
			}
			check.Equal(t, "undone", c.want, got)
			check.Equal(t, "arguments", kept, [2]map[string]any{before, after})
		})
	}
}

// reversed swaps the desired containers.
func reversed(list []any) []any {
	slices.Reverse(list)
	return list
}

// With --max-hold=0 no object can be held.
func TestAnAgentWithoutHoldsUndoesWhatIsHeld(t *testing.T) {
	s := newSubject(t, deployment)
	after := s.edited([]edit{set(int64(7), "spec", "replicas"), annotated(application.HoldUntilAnnotation, hour(1))})
	undone := forecast.Undone(s.app, &s.object, s.live, after, forecast.Setting{Now: noon})
	check.Equal(t, "number of undone fields", 1, len(undone))
}

func TestADeletedObjectIsCreatedAgain(t *testing.T) {
	cases := []struct {
		name   string
		before []edit
		wish   wish
		want   bool
	}{
		{"as a rule", nil, nil, true},
		{"while it is held", []edit{annotated(application.HoldUntilAnnotation, hour(1))}, held(hour(1), 1), true},
		{"while the Application is held", nil, func(app *application.Application) { app.Settings.HoldUntil = noon.Add(time.Hour) }, true},
		{"not in mode observe", nil, mode(application.Observe), false},
		{"not in mode suspend", nil, mode(application.Suspend), false},
		{"not of an Application that is being deleted", nil, func(app *application.Application) { app.Deleted = true }, false},
		{"not if it is being deleted already", []edit{set("2026-01-02T12:00:00Z", "metadata", "deletionTimestamp")}, nil, false},
		{"not without marks", []edit{unset("metadata", "annotations")}, nil, false},
		{"not if the agent may not", nil, refused(status.Forbidden), false},
		{"not with the marks of another owner", []edit{annotated(application.OwnerAnnotation, "shop/other apps/Deployment/shop/web")}, nil, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newSubject(t, deployment)
			if c.wish != nil {
				c.wish(s.app)
			}
			check.Equal(t, "recreated", c.want, forecast.Recreated(s.app, &s.object, s.edited(c.before)))
		})
	}
}

func TestTexts(t *testing.T) {
	const hold = ". Change it there, or hold it first: kubectl krake hold -n shop web "
	cases := []struct {
		name, manifest string
		change         edit
		want           string
	}{
		{"the name of an element", deployment, image("web", "nginx:1"),
			"spec.template.spec.containers[web].image is managed by Application shop/web and will be set back to nginx:1.27" + hold + "deployment/web"},
		{"a number", deployment, set(int64(7), "spec", "replicas"), "spec.replicas is managed by Application shop/web and will be set back to 3" + hold + "deployment/web"},
		{"a fraction", song, set(int64(7), "spec", "tempo"), "spec.tempo is managed by Application shop/web and will be set back to 1.5" + hold + "song/web"},
		{"a boolean", song, set(true, "spec", "muted"), "spec.muted is managed by Application shop/web and will be set back to false" + hold + "song/web"},
		{"an element without a name", song, set([]any{"one", "x", "three"}, "spec", "verses"),
			"spec.verses[1] is managed by Application shop/web and will be set back to two" + hold + "song/web"},
		{"a list in which elements are missing", deployment, without(1),
			"spec.template.spec.containers is managed by Application shop/web and will get back what was removed" + hold + "deployment/web"},
		{"a list with more elements", deployment, sidecar(0),
			"spec.template.spec.containers is managed by Application shop/web and will lose what was added" + hold + "deployment/web"},
		{"a value of several parts", song, unset("spec", "key"), "spec.key is managed by Application shop/web and will be set back" + hold + "song/web"},
		{"a long value", song, set("x", "spec", "long"), "spec.long is managed by Application shop/web and will be set back" + hold + "song/web"},
		{"a value of several lines, which an API server would not pass on", song, set("x", "spec", "about"),
			"spec.about is managed by Application shop/web and will be set back" + hold + "song/web"},
		{"the name of an element of several lines", song, set([]any{map[string]any{"name": "line\nbreak", "pitch": int64(2)}}, "spec", "parts"),
			"spec.parts[0].pitch is managed by Application shop/web and will be set back to 1" + hold + "song/web"},
		{"the name of a private element", song, set([]any{map[string]any{"name": "hunter2", "pitch": int64(2)}}, "spec", "data"),
			"spec.data[0].pitch is managed by Application shop/web and will be set back" + hold + "song/web"},
		{"anything in a Secret", sealed, set("x", "metadata", "labels", "tier"), "metadata.labels.tier is managed by Application shop/web and will be set back" + hold + "secret/web"},
		{"the data of a ConfigMap", config, set("x", "data", "greeting"), "data.greeting is managed by Application shop/web and will be set back" + hold + "configmap/settings"},
		{"an environment variable", deployment, env("x"), "spec.template.spec.containers[web].env[A].value is managed by Application shop/web and will be set back" + hold + "deployment/web"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newSubject(t, c.manifest)
			after := s.edited([]edit{c.change})
			check.Equal(t, "texts", []string{c.want}, s.texts(after))
		})
	}
}

// texts returns the texts of everything that a request undoes.
func (s subject) texts(after map[string]any) (texts []string) {
	undone := forecast.Undone(s.app, &s.object, s.live, after, forecast.Setting{Now: noon, MaxHold: time.Hour})
	for _, d := range undone {
		texts = append(texts, forecast.TextOf(s.app, s.object.ID, d, after)+" "+forecast.WayOut(s.app, s.object.ID, undone))
	}
	return texts
}

// A hold on the object would not count.
func TestTheTextNamesTheHoldThatCounts(t *testing.T) {
	s := newSubject(t, deployment)
	s.app.Settings.DenyHolds = true
	check.Equal(t, "texts", []string{
		"spec.replicas is managed by Application shop/web and will be set back to 3. Change it there, or hold it first: kubectl krake hold -n shop web",
	}, s.texts(s.edited([]edit{set(int64(7), "spec", "replicas")})))
}

// The loop restores marks on a held object, too.
func TestTheTextOfAMarkNamesNoHold(t *testing.T) {
	s := newSubject(t, deployment)
	check.Equal(t, "texts", []string{
		`metadata.labels["krake.dev/owned-by"] is managed by Application shop/web and will be set back to ` + s.object.Marks().Labels[application.OwnedByLabel] +
			". The agent needs it to know the object, even while it is held. To change it, stop the agent first: kubectl krake suspend -n shop web",
	}, s.texts(s.edited([]edit{unset("metadata", "labels", application.OwnedByLabel)})))
}

func TestTheTextOfADeletion(t *testing.T) {
	s := newSubject(t, deployment)
	check.Equal(t, "text", "deployment/web is managed by Application shop/web and will be created again. "+
		"Leave it out of the manifest there, or stop the agent first: kubectl krake suspend -n shop web", forecast.TextOfDeletion(s.app, s.object.ID))
}

// A difference may lie in what the request has removed.
func TestTheTextOfAnElementThatIsGone(t *testing.T) {
	s := newSubject(t, deployment)
	d := schema.Difference{Kind: schema.Changed, Want: "x", Path: schema.Path{{Field: "spec", Index: -1}, {Field: "parts", Index: -1}, {Index: 4}}}
	if text := forecast.TextOf(s.app, s.object.ID, d, nil); !strings.HasPrefix(text, "spec.parts[4] is managed") {
		t.Error(text)
	}
}

// A finished Job with a TTL is done: its deletion is not undone.
func TestADeletedJobThatHasFinishedIsDone(t *testing.T) {
	finished := set([]any{map[string]any{"type": "Complete", "status": "True"}}, "status", "conditions")
	for _, c := range []struct {
		name, spec string
		before     []edit
		want       bool
	}{
		{"before it has finished", "{ttlSecondsAfterFinished: 60}", nil, true},
		{"after it has finished", "{ttlSecondsAfterFinished: 60}", []edit{finished}, false},
		{"after it has finished, without a TTL", "{parallelism: 1}", []edit{finished}, true},
	} {
		s := newSubject(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: load}, spec: "+c.spec+"}")
		check.Equal(t, c.name, c.want, forecast.Recreated(s.app, &s.object, s.edited(c.before)))
	}
}

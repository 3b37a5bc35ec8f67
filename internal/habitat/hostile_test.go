package habitat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

func (w *world) condition(name, of string) metav1.Condition {
	w.t.Helper()
	if c := meta.FindStatusCondition(w.statusOf(of).Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (w *world) checkAccepted(of, reason string) {
	w.t.Helper()
	if c := w.condition(acceptedCondition, of); c.Reason != reason {
		w.t.Errorf("%s: want the reason %s: %+v", of, reason, c)
	}
}

func (w *world) checkState(of string, want application.State) {
	w.t.Helper()
	if state := w.statusOf(of).State; state != want {
		w.t.Errorf("%s: state %s, want %s", of, state, want)
	}
}

// The changes that users make to a generated Application, and its state afterwards.
func TestApplicationsAreBroughtBack(t *testing.T) {
	for what, change := range map[string]func(cm *corev1.ConfigMap){
		"labels":          func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"team": "blue"} },
		"what it is from": func(cm *corev1.ConfigMap) { delete(cm.Annotations, application.GeneratedFromAnnotation) },
		"owners":          func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil },
		"the manifest": func(cm *corev1.ConfigMap) {
			cm.Data[application.ManifestKey] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"
		},
		"the schema":        func(cm *corev1.ConfigMap) { delete(cm.Data, application.ObserverSchemaKey) },
		"a template beside": func(cm *corev1.ConfigMap) { cm.Data[application.ToscaKey] = "a" },
		"an archive beside": func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{application.CSARKey: {1}} },
		"all data":          func(cm *corev1.ConfigMap) { cm.Data = nil },
		"another cluster":   func(cm *corev1.ConfigMap) { cm.Annotations[application.ClusterAnnotation] = "east" },
	} {
		t.Run(what, func(t *testing.T) {
			w := carried(t, "greeter", greeter)
			before := must(t, &corev1.ConfigMap{}, w, "habitat-greeter")
			edit(w, &corev1.ConfigMap{}, "habitat-greeter", func(cm *corev1.ConfigMap) {
				change(cm)
				if cm.Labels == nil {
					cm.Labels = map[string]string{}
				}
				cm.Labels["team"] = "blue"
				cm.Annotations[application.ModeAnnotation] = "observe"
			})
			w.mustCarry("greeter")
			w.see()
			after := must(t, &corev1.ConfigMap{}, w, "habitat-greeter")
			if after.Labels["team"] != "blue" || after.Annotations[application.ModeAnnotation] != "observe" {
				t.Errorf("labels and annotations of people are gone: %v, %v", after.Labels, after.Annotations)
			}
			for key := range before.Data {
				if before.Data[key] != after.Data[key] {
					t.Errorf("%s: %q", key, after.Data[key])
				}
			}
			if len(after.Data) != len(before.Data) || len(after.BinaryData) > 0 || !metav1.IsControlledBy(after, must(t, newHabitat(), w, "greeter")) ||
				after.Labels[habitat.NameLabel] != "greeter" || after.Annotations[application.GeneratedFromAnnotation] != "Habitat/greeter" {
				t.Errorf("%v", after)
			}
			w.writes = nil
			w.must(w.carry("greeter"))
			w.wrote()
		})
	}
}

// A foreign ConfigMap of the name stays unchanged, and the Habitat reports it.
func TestNameTaken(t *testing.T) {
	other := metav1.OwnerReference{APIVersion: "other.example.org/v1", Kind: "Habitat", Name: "greeter", UID: "other", Controller: new(true)}
	for what, change := range map[string]func(cm *corev1.ConfigMap){
		"a plain one": func(*corev1.ConfigMap) {},
		"an Application": func(cm *corev1.ConfigMap) {
			cm.Annotations = map[string]string{application.FormatAnnotation: application.Format}
		},
		"with our label": func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{habitat.Label: "true"} },
		"of another Habitat": func(cm *corev1.ConfigMap) {
			cm.Annotations = map[string]string{application.GeneratedFromAnnotation: "Habitat/other"}
		},
		"of a Habitat of another kind": func(cm *corev1.ConfigMap) { cm.OwnerReferences = []metav1.OwnerReference{other} },
		"that adopts objects": func(cm *corev1.ConfigMap) {
			cm.Annotations = map[string]string{
				application.FormatAnnotation: application.Format, application.GeneratedFromAnnotation: "Habitat/greeter", application.AdoptAnnotation: "true",
			}
		},
		"of both": func(cm *corev1.ConfigMap) {
			cm.OwnerReferences = []metav1.OwnerReference{other}
			cm.Annotations = map[string]string{application.GeneratedFromAnnotation: "Habitat/greeter"}
		},
	} {
		t.Run(what, func(t *testing.T) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "habitat-greeter"}, Data: map[string]string{"a": "b"}}
			change(cm)
			w := newWorld(t, cm)
			w.habitat("greeter", greeter)
			w.mustCarry("greeter")
			w.wrote("status Habitat greeter")
			if c := w.condition(acceptedCondition, "greeter"); c.Reason != reasonNameConflict || !strings.Contains(c.Message, "habitat-greeter") {
				t.Errorf("%+v", c)
			}
			w.checkState("greeter", application.StateFailed)
		})
	}
}

// A foreign habitat-peers is not written, and every Habitat reports why it has no peers.
func TestPeersTaken(t *testing.T) {
	other := metav1.OwnerReference{APIVersion: "other.example.org/v1", Kind: "Habitat", Name: "greeter", UID: "other"}
	for what, change := range map[string]func(cm *corev1.ConfigMap){
		"a plain one":    func(*corev1.ConfigMap) {},
		"with our label": func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{habitat.Label: "true"} },
		"of a Habitat": func(cm *corev1.ConfigMap) {
			cm.Annotations = map[string]string{application.GeneratedFromAnnotation: "Habitat/peers"}
		},
		"of a Habitat of another kind": func(cm *corev1.ConfigMap) { cm.OwnerReferences = []metav1.OwnerReference{other} },
	} {
		t.Run(what, func(t *testing.T) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: peersApplication}}
			change(cm)
			w := newWorld(t, cm)
			w.habitat("greeter", greeter)
			w.see()
			w.must(w.ring())
			w.wrote()
			w.must(w.carry("greeter"))
			if c := w.condition(peerFileCondition, "greeter"); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, peersApplication) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// The changes that users make to the peer file.
func TestPeerFiles(t *testing.T) {
	const one, other = "10.0.0.1", "10.0.0.2"
	for what, test := range map[string]struct {
		change func(cm *corev1.ConfigMap)
		// wanted is the content afterwards, or "" if it must not be written.
		wanted string
		// why is the Habitat's reason if the file is not written.
		why string
	}{
		"another address":   {func(cm *corev1.ConfigMap) { cm.Data[peerFile] = "192.0.2.1" }, one, ""},
		"that of a Pod":     {func(cm *corev1.ConfigMap) { cm.Data[peerFile] = other }, other, ""},
		"several":           {func(cm *corev1.ConfigMap) { cm.Data[peerFile] = one + "\n" + other }, one, ""},
		"a blank behind":    {func(cm *corev1.ConfigMap) { cm.Data[peerFile] = one + "\n" }, one, ""},
		"another key":       {func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"mine": "a"} }, one, ""},
		"immutable":         {func(cm *corev1.ConfigMap) { cm.Data, cm.Immutable = nil, new(true) }, "", "immutable"},
		"without marks":     {func(cm *corev1.ConfigMap) { cm.Data, cm.Annotations = nil, nil }, "", "peer-watch-file"},
		"of another UID":    {func(cm *corev1.ConfigMap) { cm.Data = nil; cm.Annotations[application.OwnerUIDAnnotation] = "a" }, "", "peer-watch-file"},
		"binary data":       {func(cm *corev1.ConfigMap) { cm.Data, cm.BinaryData = nil, map[string][]byte{peerFile: []byte("a")} }, "", "binaryData"},
		"other binary data": {func(cm *corev1.ConfigMap) { cm.Data, cm.BinaryData = nil, map[string][]byte{"mine": []byte("a")} }, one, ""},
	} {
		t.Run(what, func(t *testing.T) {
			w := carried(t, "greeter", greeter)
			w.have(pod("greeter-0", "greeter", one))
			w.have(pod("greeter-1", "greeter", other))
			edit(w, &corev1.ConfigMap{}, peerFile, test.change)
			w.see()
			w.refuse = func(verb string, object client.Object) error {
				if cm, ok := object.(*corev1.ConfigMap); ok && verb == "patch" && len(cm.BinaryData[peerFile]) > 0 && cm.Data[peerFile] != "" {
					return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, peerFile, nil) // as the API server does
				}
				return nil
			}
			before := must(t, &corev1.ConfigMap{}, w, peerFile)
			w.must(w.choose())
			after := must(t, &corev1.ConfigMap{}, w, peerFile)
			if test.wanted == "" {
				if diff := before.ResourceVersion != after.ResourceVersion; diff {
					t.Errorf("it was written: %v", after)
				}
			} else if after.Data[peerFile] != test.wanted || before.Data["mine"] != after.Data["mine"] {
				t.Errorf("%q, want %q", after.Data, test.wanted)
			}
			w.mustCarry("greeter")
			if test.wanted != "" {
				test.why = "runs"
			}
			c := w.condition(peerFileCondition, "greeter")
			if isTrue := c.Status == metav1.ConditionTrue; isTrue != (test.wanted != "") || !strings.Contains(c.Message, test.why) || w.statusOf("greeter").Peer != test.wanted {
				t.Errorf("%+v, peer %s", c, w.statusOf("greeter").Peer)
			}
		})
	}
}

// For any Habitat, the status is small, valid and on one line. No controller fails or panics,
// and each mistake is reported once.
func TestHostile(t *testing.T) {
	long := strings.Repeat("ü", 100_000)
	for what, text := range map[string]string{
		"nothing":           `{}`,
		"null":              `{"customVersion": "v1beta2", "spec": null}`,
		"a list as version": `{"customVersion": ["v1beta2"]}`,
		"a long version":    `{"customVersion": "` + long + `"}`,
		"long everywhere": `{"customVersion": "v1beta2", "spec": {"v1beta2": {"image": "` + long + `", "count": "` + long + `", "` + long + `": 1,
			"service": {"name": "` + long + `", "topology": "` + long + `"}}}}`,
		"a thousand mistakes": `{"customVersion": "v1beta2", "spec": {"v1beta2": {"image": "a", "service": {"name": "a", "topology": "leader", "bind": [` +
			strings.TrimSuffix(strings.Repeat(`{"name": ":"},`, 100), ",") + `]}}}}`,
		"control characters": `{"customVersion": "v1beta2", "spec": {"v1beta2": {"image": "a", "env": [{"name": "A", "value": "\u0000\u0007\u0085\ud800"}],
			"service": {"name": "a", "topology": "leader"}}}}`,
		"lines everywhere": `{"customVersion": "v1beta2", "spec": {"v1beta2": {"image": "a\nb", "a\nb": 1, "service": {"name": "a\nb", "topology": "\n", "group": "a\nb",
			"ringSecretName": "\n-20260102030405"}}}}`,
		"a status of somebody else": `{"customVersion": "v1beta2", "spec": {}, "status": {"conditions": "all is well", "overwritten": 7, "state": {"a": 1}}}`,
		"a huge environment": `{"customVersion": "v1beta2", "spec": {"v1beta2": {"image": "a", "env": [` + strings.TrimSuffix(strings.Repeat(
			`{"name": "A", "value": "`+strings.Repeat("a: *b", 500)+`"},`, 500), ",") + `], "service": {"name": "a", "topology": "leader"}}}}`,
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			object := newHabitat()
			kit.Must(t, json.Unmarshal([]byte(text), &object.Object))
			object.SetGroupVersionKind(kind)
			object.SetNamespace(shop)
			object.SetName("hostile")
			object.SetGeneration(1)
			w.have(object)
			w.refuse = func(_ string, object client.Object) error {
				if cm, ok := object.(*corev1.ConfigMap); ok && len(cm.Data[application.ManifestKey]) > manifest.MaxBytes {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, cm.Name, errors.New("too large"))
				}
				return nil
			}
			w.see()
			w.must(w.ring())
			w.must(w.carry("hostile"))
			w.must(w.replacePods("hostile"))
			w.agent()
			fits(t, w, "hostile")
			w.mustCarry("hostile")
			w.see()
			w.writes, w.told = nil, nil
			w.must(w.carry("hostile"))
			w.must(w.ring())
			w.wrote()
			if len(w.told) > 0 {
				t.Errorf("told again: %q", w.told)
			}
		})
	}
}

// fits checks that the API server accepts the status and the Events.
func fits(t *testing.T, w *world, name string) {
	t.Helper()
	status := w.statusOf(name)
	text, err := json.Marshal(status)
	if err != nil || len(text) > 8<<10 {
		t.Errorf("the status has %d bytes: %v", len(text), err)
	}
	if len(status.Conditions) != 3 {
		t.Errorf("conditions %v", status.Conditions)
	}
	for _, said := range append(w.told, status.Message) {
		if strings.Contains(said, "\n") || len(said) > 1024+len("Warning ValidationFailed ") || !utf8.ValidString(said) {
			t.Errorf("%d bytes: %q", len(said), said)
		}
	}
	for _, c := range status.Conditions {
		if c.Reason == "" || c.Status == "" || strings.Contains(c.Message, "\n") {
			t.Errorf("condition %+v", c)
		}
	}
}

// The reports of refusals by the API server, and of what runs meanwhile.
func TestRefusals(t *testing.T) {
	w := carried(t, "greeter", greeter)
	ready(w, "habitat-greeter")
	w.image("greeter", "greeter:2")
	w.see()
	w.refuse = func(verb string, object client.Object) error {
		if verb != "patch" {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, object.GetName(), errors.New("no\nway"))
	}
	w.must(w.carry("greeter"))
	status := w.statusOf("greeter")
	if c := w.condition(acceptedCondition, "greeter"); c.Reason != reasonRefused || !strings.Contains(c.Message, "way") || strings.Contains(c.Message, "\n") {
		t.Errorf("%+v", c)
	}
	if c := w.condition(application.ReadyCondition, "greeter"); c.Status != metav1.ConditionTrue || status.Application != "habitat-greeter" || status.Ready != "2/2" {
		t.Errorf("%+v", status)
	}
	// A temporary error is no verdict.
	w.refuse = func(verb string, _ client.Object) error {
		if verb != "patch" {
			return nil
		}
		return apierrors.NewInternalError(errors.New("the webhook does not answer"))
	}
	if _, err := w.carry("greeter"); err == nil {
		t.Error("no error")
	}
}

// ready records as the agent that the Application is healthy.
func ready(w *world, name string, drifts ...application.Drift) {
	w.t.Helper()
	edit(w, &corev1.ConfigMap{}, name, func(cm *corev1.ConfigMap) {
		app, err := application.Read(cm)
		kit.Must(w.t, err)
		app.Status = application.Status{
			State: application.StateRunning, ObservedSpec: app.Spec.Digest(), Drifts: drifts,
			ContainerHealth: &application.ContainerHealth{DesiredPods: 2, RunningPods: 2},
			Conditions:      []metav1.Condition{{Type: application.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready"}},
		}
		kit.Must(w.t, app.Record(cm))
	})
}

// A Habitat repeats the agent's words about its Application, and about that of the peer file.
func TestTellsWhatTheAgentTells(t *testing.T) {
	const words = "the agent may not create it"
	w := newWorld(t)
	w.habitat("greeter", greeter)
	w.see()
	w.must(w.ring())
	w.mustCarry("greeter")
	for _, name := range []string{"habitat-greeter", peersApplication} {
		edit(w, &corev1.ConfigMap{}, name, func(cm *corev1.ConfigMap) {
			app, err := application.Read(cm)
			kit.Must(t, err)
			app.Status = application.Status{State: application.StateFailed, ObservedSpec: app.Spec.Digest(), Conditions: []metav1.Condition{
				{Type: application.ReadyCondition, Status: metav1.ConditionFalse, Reason: "Forbidden", Message: words},
			}}
			kit.Must(t, app.Record(cm))
		})
	}
	w.mustCarry("greeter")
	if c := w.condition(peerFileCondition, "greeter"); c.Message != "ConfigMap habitat-peers: "+words || w.statusOf("greeter").Message != words {
		t.Errorf("%+v, and the status says %q", c, w.statusOf("greeter").Message)
	}
}

// An edit of many fields, or of long paths, fits into status and Event.
func TestManyFields(t *testing.T) {
	drift := application.Drift{
		Object: manifest.ID{APIVersion: "apps/v1", Kind: "StatefulSet", Namespace: shop, Name: "greeter"},
		Seen:   metav1.Now().Rfc3339Copy(), Repaired: "Reverted", Manager: strings.Repeat("m", 128), Count: 1,
	}
	for i := range 1000 {
		drift.Fields = append(drift.Fields, application.DriftedField{Path: fmt.Sprintf("spec.template.spec.containers[0].env[%d].valueFrom.fieldRef.fieldPath", i)})
	}
	w := carried(t, "greeter", greeter)
	ready(w, "habitat-greeter", drift)
	w.mustCarry("greeter")
	fits(t, w, "greeter")
	if w.statusOf("greeter").Overwritten == nil || len(w.told) != 1 || !strings.Contains(w.told[0], "env[0]") {
		t.Errorf("%+v, %q", w.statusOf("greeter").Overwritten, w.told)
	}
	w.see()
	w.writes = nil
	w.must(w.carry("greeter"))
	w.wrote()
	if len(w.told) != 1 {
		t.Errorf("told again: %q", w.told)
	}
}

// Whatever the status of a ConfigMap, the controller still reports its own conditions.
func TestUnreadableApplications(t *testing.T) {
	for _, text := range []string{"", "{", "7", `{"conditions": 7}`, `{"conditions": [{"type": "Ready"}]}`, `{"drifts": [{"object": {}}]}`} {
		t.Run(text, func(t *testing.T) {
			w := carried(t, "greeter", greeter)
			edit(w, &corev1.ConfigMap{}, "habitat-greeter", func(cm *corev1.ConfigMap) {
				cm.Data[application.StatusKey] = text
				app, err := application.Read(cm)
				if err == nil && text == `{"conditions": [{"type": "Ready"}]}` {
					cm.Data[application.StatusKey] = `{"observedSpec": "` + app.Spec.Digest() + `", "conditions": [{"type": "Ready"}]}`
				}
			})
			w.mustCarry("greeter")
			fits(t, w, "greeter")
		})
	}
}

// The Secrets of a Habitat may be created and deleted in any order. No update in between
// changes a field that is immutable in a StatefulSet.
func TestImmutableBehindAMissingSecret(t *testing.T) {
	const text = `
customVersion: v1beta2
spec: {v1beta2: {image: a:1, persistentStorage: {size: 1Gi, mountPath: /data}, service: {name: a, topology: standalone}}}`
	w := carried(t, "greeter", text)
	edit(w, newHabitat(), "greeter", func(h *unstructured.Unstructured) {
		for value, path := range map[string][]string{
			"2Gi":    {"spec", "v1beta2", "persistentStorage", "size"},
			"config": {"spec", "v1beta2", "service", "configSecretName"},
		} {
			kit.Must(t, unstructured.SetNestedField(h.Object, value, path...))
		}
	})
	w.mustCarry("greeter")
	w.checkAccepted("greeter", reasonSecretNotFound)
	w.have(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "config"}})
	w.mustCarry("greeter")
	w.checkAccepted("greeter", reasonImmutable)
	if cm := must(t, &corev1.ConfigMap{}, w, "habitat-greeter"); !strings.Contains(cm.Data[application.ManifestKey], "1Gi") {
		t.Error("the claim was changed")
	}
}

// A user has replaced the manifest of the Application, and the Habitat has changed, too. The
// replaced manifest does not restrict the change.
func TestEditedAndChanged(t *testing.T) {
	w := carried(t, "greeter", greeter)
	w.image("greeter", "greeter:2")
	edit(w, &corev1.ConfigMap{}, "habitat-greeter", func(cm *corev1.ConfigMap) {
		cm.Data[application.ManifestKey] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"
	})
	w.mustCarry("greeter")
	w.checkAccepted("greeter", reasonAccepted)
}

// Values of Secrets and of variables are never published.
func TestTellsNoValues(t *testing.T) {
	const secret = "hunter2"
	w := newWorld(t)
	for name, env := range map[string]string{
		"twice":   `{name: A, value: ` + secret + `, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}`,
		"unknown": `{name: A, value: ` + secret + `, valueform: ` + secret + `}`,
		"typed":   `{name: A, value: [` + secret + `]}`,
		"name":    `{name: "", value: ` + secret + `}`,
		"text":    secret,
	} {
		w.habitat(name, "customVersion: v1beta2\nspec: {v1beta2: {image: a, env: ["+env+"], service: {name: a, topology: leader}}}")
		w.mustCarry(name)
		text, err := json.Marshal(w.statusOf(name))
		if err != nil || strings.Contains(string(text)+strings.Join(w.told, ""), secret) {
			t.Errorf("%s: %v: %s, %q", name, err, text, w.told)
		}
		w.checkAccepted(name, reasonValidationFailed)
	}
}

// The cache does not store the content of Pods.
func TestCachesKeepLittle(t *testing.T) {
	trimmed, err := trimPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{Value: "hunter2"}}}}},
	})
	kit.Must(t, err)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(trimmed)
	if err != nil || strings.Contains(fmt.Sprint(fields), "hunter2") || !strings.Contains(fmt.Sprint(fields), "name:a") {
		t.Errorf("%v: %v", err, fields)
	}
}

package mutate_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// mostSeed is the length of the longest text of the corpus that a fuzzer starts from. In a
// long text, the fuzzer would rarely change the relevant place.
const mostSeed = 2 << 10

// seeds returns the short inputs of the corpus.
func seeds(f *testing.F) []*corev1.ConfigMap {
	f.Helper()
	var short []*corev1.ConfigMap
	for _, file := range badFiles(f) {
		for _, input := range badInputs(f, file) {
			cm, _ := input.request(f)
			if spec := application.SpecOf(cm); len(spec.Manifest)+len(spec.ObserverSchema) <= mostSeed {
				short = append(short, cm)
			}
		}
	}
	return short
}

// Webhook, kubectl, agent and API server decode a text to the same value.
func FuzzDecodeAsKubectl(f *testing.F) {
	for _, cm := range seeds(f) {
		f.Add([]byte(cm.Data["spec.manifest"]))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkAsKubectl(t, text) })
}

// A user creates an Application, changes it, and forges all that can be forged: no forged
// value is stored.
func FuzzPrepare(f *testing.F) {
	for i, cm := range seeds(f) {
		manifest, observerSchema := cm.Data["spec.manifest"], cm.Data["spec.observer_schema"]
		if i%2 == 0 {
			f.Add(manifest, observerSchema, storedManifest, "", cm.Annotations["krake.dev/cluster"], `[{"kind":"forged"}]`)
		} else {
			f.Add(storedManifest, "", manifest, observerSchema, "", "forged")
		}
	}
	f.Fuzz(func(t *testing.T, manifest, observerSchema, laterManifest, laterSchema, cluster, forged string) {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "demo", Name: "web",
				Labels:      map[string]string{"team": forged},
				Annotations: map[string]string{"krake.dev/application": "v1", "krake.dev/cluster": cluster},
			},
			Data: map[string]string{"spec.manifest": manifest, "spec.observer_schema": observerSchema},
		}
		forge(cm)
		if !checkPrepared(t, cm, nil) {
			return
		}
		learned(t, cm)
		later := cm.DeepCopy()
		later.Data["spec.manifest"], later.Data["spec.observer_schema"] = laterManifest, laterSchema
		forge(later)
		for key := range later.Data {
			if application.IsAgentKey(key) {
				later.Data[key] = forged
			}
		}
		checkPrepared(t, later, cm)
	})
}

// Any wish to an agent is understood or refused. A stored wish, understood or not, does not
// block edits of other fields.
func FuzzSettings(f *testing.F) {
	f.Add("enforce", "delete", "true", "deny", "2026-01-02T15:04:05Z", "definitions,songs", "")
	f.Add("suspend", "orphan", "false", "", "2026-01-02T15:04:05+01:00", "Songs", "observe")
	f.Add("", "", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, mode, policy, adopt, hold, until, after, later string) {
		cm := submitted()
		for name, value := range map[string]string{
			application.ModeAnnotation: mode, application.DeletionPolicyAnnotation: policy, application.AdoptAnnotation: adopt,
			application.HoldAnnotation: hold, application.HoldUntilAnnotation: until, application.AfterAnnotation: after,
		} {
			if value != "" {
				cm.Annotations[name] = value
			}
		}
		_, misunderstood := application.SettingsOf(cm)
		check.Equal(t, "admitted", len(misunderstood) == 0, checkPrepared(t, cm, nil))
		if suspicious := mutate.SuspectHold(cm, &corev1.ConfigMap{}, time.Unix(1767366245, 0)); len(suspicious) > 0 && len(misunderstood) > 0 {
			t.Errorf("what is refused is warned of: %v", suspicious)
		}

		was := stored(t)
		was.Annotations = cm.Annotations
		edited := was.DeepCopy()
		edited.Labels["team"] = "red"
		check.Equal(t, "an edit of something else", true, checkPrepared(t, edited, was))
		edited.Annotations[application.ModeAnnotation] = later
		_, misunderstood = application.SettingsOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{application.ModeAnnotation: later},
		}})
		check.Equal(t, "an edit of the mode", len(misunderstood) == 0 || mode != "" && later == mode, checkPrepared(t, edited, was))
	})
}

// learned records learned values as an agent.
func learned(t *testing.T, cm *corev1.ConfigMap) {
	t.Helper()
	app, err := application.Read(cm)
	if err != nil {
		t.Fatalf("what was published cannot be read: %v", err)
	}
	app.Learned, app.Finalized = key3(), true
	app.Status = application.Status{ObservedSpec: app.Spec.Digest(), State: application.StateRunning}
	check.Must(t, app.Record(cm))
}

// checkPrepared prepares a request, and checks what must hold for each. It reports whether the
// request is admitted.
func checkPrepared(t *testing.T, cm, stored *corev1.ConfigMap) bool {
	t.Helper()
	sent, before := cm.DeepCopy(), stored.DeepCopy()
	prepared := prepare(cm, stored)
	check.Equal(t, "the stored object", before, stored)
	again := sent.DeepCopy()
	check.Equal(t, "what is told of the same request", told(prepared), told(prepare(again, stored)))
	if len(prepared.Refusals) > 0 {
		return false
	}
	check.Equal(t, "what is made of the same request", cm, again)
	twice := cm.DeepCopy()
	second := prepare(twice, stored)
	second.Warnings = prepared.Warnings // no forged status is left to warn about
	check.Equal(t, "what is told the second time", told(prepared), told(second))
	check.Equal(t, "what is prepared twice", cm, twice)
	checkUnforged(t, cm, stored)
	check.Equal(t, "the user's text", application.SpecOf(sent), application.SpecOf(cm))
	if app, err := application.Read(cm); !readable(app, err) && isReadable(stored) {
		t.Errorf("what is published cannot be read: %v", err)
	}
	return true
}

// isReadable reports whether all stored documents are valid.
func isReadable(stored *corev1.ConfigMap) bool {
	if stored == nil || !application.IsApplication(stored) {
		return true
	}
	app, err := application.Read(stored)
	return readable(app, err)
}

func readable(app *application.Application, err error) bool {
	if err != nil || len(app.Damaged) > 0 {
		return false
	}
	_, applied := app.LastApplied.Decode()
	_, observed := app.LastObserved.Decode()
	return applied == nil && observed == nil
}

func told(prepared mutate.Prepared) []any {
	return append(messages(prepared.Refusals), strings.Join(prepared.Warnings, "\n"), prepared.Checked, prepared.Wanted, prepared.Former)
}

// checkUnforged checks the result of a forged request. What only agents write is unchanged.
// What the webhook writes is the same as for a request without forged status.
func checkUnforged(t *testing.T, cm, stored *corev1.ConfigMap) {
	t.Helper()
	if stored == nil || !application.IsApplication(stored) {
		stored = &corev1.ConfigMap{}
	}
	honest := cm.DeepCopy()
	dropStatus(honest)
	prepare(honest, stored)
	check.Equal(t, "what an honest request gives", honest, cm)
	for key, value := range cm.Data {
		if application.IsAgentKey(key) && stored.Data[key] != value {
			t.Errorf("data %s is forged: %q", key, value)
		}
	}
	for key, value := range cm.BinaryData {
		if application.IsAgentKey(key) && string(stored.BinaryData[key]) != string(value) {
			t.Errorf("binary data %s is forged: %q", key, value)
		}
	}
	for _, finalizer := range cm.Finalizers {
		if application.IsOurFinalizer(finalizer) && !strings.Contains(strings.Join(stored.Finalizers, " "), finalizer) {
			t.Errorf("finalizer %s is forged", finalizer)
		}
	}
}

// dropStatus removes the fields that a request must not contain.
func dropStatus(cm *corev1.ConfigMap) {
	maps.DeleteFunc(cm.Data, func(key, _ string) bool { return application.IsStatusKey(key) })
	maps.DeleteFunc(cm.BinaryData, func(key string, _ []byte) bool { return application.IsStatusKey(key) })
}

package application_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// configMap returns an Application as a user writes it.
func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: "web", UID: "u1", ResourceVersion: "7",
			Annotations: map[string]string{"krake.dev/application": "v1"},
		},
		Data: map[string]string{"spec.manifest": "kind: Song\n"},
	}
}

func TestIsApplication(t *testing.T) {
	cm := configMap()
	check.Equal(t, "an annotated ConfigMap is an Application", true, application.IsApplication(cm))
	cm.Annotations["krake.dev/application"] = "v9"
	check.Equal(t, "so it is in another format version, so that its objects are kept", true, application.IsApplication(cm))
	check.Equal(t, "a ConfigMap without annotations is one", false, application.IsApplication(&corev1.ConfigMap{}))
}

func TestDigest(t *testing.T) {
	spec := application.Spec{Manifest: "ab", ObserverSchema: "c"}
	// With another digest, the spec of every Application would count as changed.
	check.Equal(t, "digest", "sha256:115323e562c4a4fdf7ceacedca660dc4bbe1389dab9323aad08440907c7426d0", spec.Digest())
	for _, other := range []application.Spec{
		{Manifest: "abc"},
		{Manifest: "a", ObserverSchema: "bc"}, // the same text, split elsewhere
		{Manifest: "c", ObserverSchema: "ab"},
	} {
		check.Equal(t, other.Manifest+" and "+other.ObserverSchema+" have the same digest", false, other.Digest() == spec.Digest())
	}
}

func TestSameFor(t *testing.T) {
	deleted := metav1.NewTime(time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC))
	tests := []struct {
		why    string
		change func(cm *corev1.ConfigMap)
		want   bool
	}{
		{"nothing", func(*corev1.ConfigMap) {}, true},
		{"what webhook and agents write", func(cm *corev1.ConfigMap) {
			cm.Data["status"], cm.Data["inventory.local"] = "{}", "[]"
			cm.BinaryData = map[string][]byte{"status.learned": {1}}
			cm.Labels = map[string]string{"krake.dev/state": "RUNNING"}
			cm.Finalizers = []string{"local.krake.dev/resources"}
			cm.ResourceVersion = "8"
			cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "agent"}}
		}, true},
		{"the manifest", func(cm *corev1.ConfigMap) { cm.Data["spec.manifest"] = "x" }, false},
		{"the observer schema", func(cm *corev1.ConfigMap) { cm.Data["spec.observer_schema"] = "x" }, false},
		{"an annotation, which may be a mode or a cluster", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/cluster"] = "edge" }, false},
		{"the deletion", func(cm *corev1.ConfigMap) { cm.DeletionTimestamp = &deleted }, false},
		{"a deletion and creation that was seen as one update", func(cm *corev1.ConfigMap) { cm.UID = "u2" }, false},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			changed := configMap()
			test.change(changed)
			check.Equal(t, "the same", test.want, application.SameFor(configMap(), changed, "local"))
		})
	}
}

// Only an Application without recorded objects waits for others.
func TestAwaited(t *testing.T) {
	cm := configMap()
	cm.Annotations[application.AfterAnnotation] = "b,c"
	check.Equal(t, "before it has begun", []string{"b", "c"}, application.Awaited(cm, "east"))
	for _, data := range []func(key string){
		func(key string) { cm.Data[key] = "[]" },
		func(key string) { cm.BinaryData = map[string][]byte{key: {}} },
	} {
		data(application.InventoryKey("east"))
		check.Equal(t, "after it has begun", []string(nil), application.Awaited(cm, "east"))
		check.Equal(t, "on another cluster", []string{"b", "c"}, application.Awaited(cm, "west"))
		delete(cm.Data, application.InventoryKey("east"))
	}
}

// An unreadable value counts as the one that changes the least on the target. Admission
// refuses it, so it occurs only if the webhook was absent.
func TestSettings(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	cases := []struct {
		name        string
		annotations map[string]string
		want        application.Settings
		refusals    int
	}{
		{"the defaults", nil, application.Settings{Mode: application.Enforce, DeletionPolicy: application.Delete}, 0},
		{"all of them", map[string]string{
			application.ModeAnnotation: "suspend", application.DeletionPolicyAnnotation: "orphan", application.AdoptAnnotation: "true",
			application.HoldAnnotation: "deny", application.HoldUntilAnnotation: "2026-01-02T12:00:00Z", application.GuardAnnotation: "deny",
			application.AfterAnnotation: "definitions, songs.v2",
		}, application.Settings{After: []string{"definitions", "songs.v2"}, Guard: application.GuardDeny, Mode: application.Suspend, DeletionPolicy: application.Orphan, Adopt: true, DenyHolds: true, HoldUntil: noon}, 0},
		{"none that can be read", map[string]string{
			application.ModeAnnotation: "off", application.DeletionPolicyAnnotation: "", application.AdoptAnnotation: "yes",
			application.HoldAnnotation: "please", application.HoldUntilAnnotation: "tomorrow", application.GuardAnnotation: "true",
			application.AfterAnnotation: "Definitions",
		}, application.Settings{After: []string{"Definitions"}, Guard: application.GuardWarn, Mode: application.Observe, DeletionPolicy: application.Orphan}, 7},
		{"a hold that cannot be read", map[string]string{application.HoldUntilAnnotation: "tomorrow"},
			application.Settings{Mode: application.Observe, DeletionPolicy: application.Delete}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, refusals := application.SettingsOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}})
			check.Equal(t, "settings", c.want, got)
			check.Equal(t, "number of refusals", c.refusals, len(refusals))
		})
	}
}

package application_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

type object = map[string]any

// running returns an Application as its agent records it.
func running() *application.Application {
	return &application.Application{
		Settings:       application.Settings{Mode: application.Enforce, DeletionPolicy: application.Delete},
		NamespacedName: types.NamespacedName{Namespace: "demo", Name: "web"},
		UID:            "u1",
		Version:        "7",
		Cluster:        "local",
		Holder:         "local",
		Spec:           application.Spec{Manifest: "kind: Song\n"},
		Annotations:    map[string]string{application.FormatAnnotation: application.Format},
		LastApplied:    application.Publishing([]object{{"kind": "Song", "spec": object{"key3": "kilestlai", "large": int64(1<<53 + 1)}}}),
		LastObserved:   application.Publishing([]object{{"kind": "Song", "spec": object{"half": 0.5}}}),
		Learned:        []object{{"kind": "Song", "spec": object{"list": []any{nil, "b"}}}},
		Status: application.Status{
			ObservedSpec: "sha256:x",
			State:        application.StateRunning,
			Conditions:   []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Reconciled"}},
		},
		Inventory: []manifest.ID{{APIVersion: "v1", Kind: "Song", Namespace: "demo", Name: "top50"}},
		Finalized: true,
	}
}

func record(t *testing.T, app *application.Application, cm *corev1.ConfigMap) {
	t.Helper()
	check.Must(t, app.Record(cm))
}

func TestReadGivesWhatRecordWrote(t *testing.T) {
	cm := configMap()
	record(t, running(), cm)
	got, err := application.Read(cm)
	check.Must(t, err)
	want := running()
	want.DocumentsDigest, want.DocumentsAreOurs = "4188368a117fcbd3be1372bf7142c422", true
	got.NotAdmitted = nil // the reader verifies it
	check.Equal(t, "what is read", want, got)
}

// In the former form, the first object had what was recorded beside the objects.
func TestReadOfAFormerInventory(t *testing.T) {
	cm := configMap()
	record(t, running(), cm)
	cm.Data["inventory.local"] = `[{"apiVersion":"v1","kind":"Song","namespace":"demo","name":"top50","vouch":"4188368a117fcbd3be1372bf7142c422",` +
		`"hooks":{"tokens":{"shutdown":"x"}}},{"apiVersion":"v1","kind":"Song","namespace":"demo","name":"other","adopted":true}]`
	app, err := application.Read(cm)
	check.Must(t, err)
	other := manifest.ID{APIVersion: "v1", Kind: "Song", Namespace: "demo", Name: "other"}
	check.Equal(t, "inventory", append(running().Inventory, other), app.Inventory)
	check.Equal(t, "adopted objects", []manifest.ID{other}, app.Adopted)
	check.Equal(t, "tokens", map[application.Hook]string{application.Shutdown: "x"}, app.Hooks.Tokens)
	check.Equal(t, "the documents are ours", true, app.DocumentsAreOurs)
	held, err := application.HeldBy(cm)
	check.Must(t, err)
	check.Equal(t, "held by all", app.Inventory, held)
}

// Only the holder's agent writes its inventory. The inventory therefore proves which documents
// the agent wrote itself.
func TestDocumentsAreOurs(t *testing.T) {
	for name, forge := range map[string]func(cm *corev1.ConfigMap){
		"what was learned":  func(cm *corev1.ConfigMap) { cm.Data["status.learned"] = "[]" },
		"what was observed": func(cm *corev1.ConfigMap) { delete(cm.Data, "status.last_observed_manifest") },
		"both, in exchange": func(cm *corev1.ConfigMap) {
			cm.Data["status.learned"], cm.Data["status.last_observed_manifest"] = cm.Data["status.last_observed_manifest"], cm.Data["status.learned"]
		},
		"no inventory": func(cm *corev1.ConfigMap) { delete(cm.Data, "inventory.local") },
	} {
		cm := configMap()
		record(t, running(), cm)
		forge(cm)
		app, err := application.Read(cm)
		check.Must(t, err)
		check.Equal(t, name+": the documents are ours", false, app.DocumentsAreOurs)
	}
}

func TestReadOfAFreshApplication(t *testing.T) {
	want := &application.Application{
		Settings:       application.Settings{Mode: application.Enforce, DeletionPolicy: application.Delete},
		NamespacedName: types.NamespacedName{Namespace: "demo", Name: "web"},
		UID:            "u1", Version: "7", Cluster: "local", Holder: "local", DocumentsAreOurs: true,
		Spec:        application.Spec{Manifest: "kind: Song\n"},
		Annotations: map[string]string{application.FormatAnnotation: application.Format},
	}
	got, err := application.Read(configMap())
	check.Must(t, err)
	check.Equal(t, "it is admitted before its signature was verified", false, got.NotAdmitted == nil)
	got.NotAdmitted = nil
	check.Equal(t, "Application", want, got)
}

// Each agent reads its own inventory and its own finalizer.
func TestReadIsForTheTargetCluster(t *testing.T) {
	cm := configMap()
	record(t, running(), cm)
	cm.Annotations["krake.dev/cluster"] = "edge"
	got, err := application.Read(cm)
	check.Must(t, err)
	if got.Cluster != "edge" || got.Finalized || len(got.Inventory) > 0 {
		t.Errorf("cluster %s, finalized %v, inventory %v", got.Cluster, got.Finalized, got.Inventory)
	}
}

func TestReadRefusesAnUnknownFormat(t *testing.T) {
	for _, format := range []string{"v2", "", "V1"} {
		cm := configMap()
		cm.Annotations["krake.dev/application"] = format
		app, err := application.Read(cm)
		if !errors.Is(err, application.ErrFormat) || app != nil {
			t.Errorf("format %q: %v, %v", format, app, err)
		}
	}
	if _, err := application.Read(&corev1.ConfigMap{}); !errors.Is(err, application.ErrFormat) {
		t.Errorf("no annotation: %v", err)
	}
}

// An unreadable document stays as stored. Only the status is rewritten.
func TestDamagedDocuments(t *testing.T) {
	cm := configMap()
	cm.Data["status"] = "[]"
	cm.Data["status.learned"] = "{"
	cm.BinaryData = map[string][]byte{"inventory.local": []byte("no gzip")}
	app, err := application.Read(cm)
	check.Must(t, err)
	for key, want := range map[string]string{"status": "decode status:", "status.learned": "decode status.learned:", "inventory.local": "expand inventory.local:"} {
		check.Fails(t, key, app.Damaged[key], want)
	}
	app.Status.State = application.StateFailed
	check.Must(t, app.Record(cm))
	if cm.Data["status"] != `{"state":"FAILED"}` || cm.Data["status.learned"] != "{" || string(cm.BinaryData["inventory.local"]) != "no gzip" {
		t.Errorf("recorded: %v, %v", cm.Data, cm.BinaryData)
	}
}

func TestRecordWritesWhatIsTheAgentsAndNothingElse(t *testing.T) {
	cm := configMap()
	cm.Annotations["note"] = "mine"
	cm.Labels = map[string]string{"team": "blue", "krake.dev/cluster": "local", "holder.krake.dev/local": "true"}
	cm.Finalizers = []string{"example.org/mine", "edge.krake.dev/resources"}
	cm.Data["spec.observer_schema"] = "x"
	cm.Data["status.mangled_observer_schema"] = "[]"
	cm.Data["status.from.a.later.version"] = "y"
	cm.Data["inventory.edge"] = "[]"
	cm.BinaryData = map[string][]byte{"spec.csar": {1, 2}}
	want := cm.DeepCopy()
	want.Labels["krake.dev/state"] = "RUNNING"
	want.Finalizers = append(want.Finalizers, "local.krake.dev/resources")
	want.Data["status"] = `{"observedSpec":"sha256:x","state":"RUNNING",` +
		`"conditions":[{"type":"Ready","status":"True","lastTransitionTime":null,"reason":"Reconciled","message":""}]}`
	want.Data["status.last_applied_manifest"] = `[{"kind":"Song","spec":{"key3":"kilestlai","large":9007199254740993}}]`
	want.Data["status.last_observed_manifest"] = `[{"kind":"Song","spec":{"half":0.5}}]`
	want.Data["status.learned"] = `[{"kind":"Song","spec":{"list":[null,"b"]}}]`
	want.Data["inventory.local"] = `{"digest":"4188368a117fcbd3be1372bf7142c422",` +
		`"objects":[{"apiVersion":"v1","kind":"Song","namespace":"demo","name":"top50"}]}`

	record(t, running(), cm)
	check.Equal(t, "recorded", want, cm)
	record(t, running(), cm)
	check.Equal(t, "the second time", want, cm)
}

// The last record of a deleted Application releases it. Everything that the agent put on it is
// removed, and what others hold stays.
func TestRecordLetsGo(t *testing.T) {
	cm := configMap()
	cm.DeletionTimestamp = new(metav1.Now())
	cm.Labels = map[string]string{"holder.krake.dev/local": "true", "holder.krake.dev/edge": "true"}
	cm.Finalizers = []string{"local.krake.dev/resources", "edge.krake.dev/resources"}
	app := running()
	record(t, app, cm)
	app.Deleted = true
	record(t, app, cm)
	check.Equal(t, "label of the agent, which still holds objects", "true", cm.Labels["holder.krake.dev/local"])
	seen := cm.Finalizers
	app.Finalized, app.Inventory = false, nil
	record(t, app, cm)
	check.Equal(t, "a list that others may have", []string{"local.krake.dev/resources", "edge.krake.dev/resources"}, seen)
	check.Equal(t, "finalizers", []string{"edge.krake.dev/resources"}, cm.Finalizers)
	check.Equal(t, "labels", map[string]string{"holder.krake.dev/edge": "true", "krake.dev/state": "RUNNING"}, cm.Labels)
	_, isWritten := cm.Data["inventory.local"]
	check.Equal(t, "an empty inventory is written", false, isWritten)
}

func TestPublish(t *testing.T) {
	cm := configMap()
	want := cm.DeepCopy()
	want.Labels = map[string]string{"krake.dev/cluster": "local", "holder.krake.dev/local": "true"}
	want.Data["status.mangled_observer_schema"] = `[{"spec":{"a":null}}]`
	want.Data["status.last_applied_manifest"] = `[]`
	check.Must(t, application.Publish(cm, application.Documents{Mangled: []object{{"spec": object{"a": nil}}}, Applied: []object{}}))
	check.Equal(t, "published", want, cm)
}

// Equal documents are equal bytes, so that no change means no write.
func TestDocumentsAreCanonical(t *testing.T) {
	document := func(from int) []object {
		fields := object{}
		for i := range 50 {
			name := fmt.Sprint((from + i) % 50)
			fields[name] = "<&> \u2028"
		}
		return []object{fields}
	}
	for _, size := range []int{1, 2000} { // as text, and compressed
		first, second := configMap(), configMap()
		app := running()
		app.Learned = nil
		for range size {
			app.Learned = append(app.Learned, document(0)...)
		}
		record(t, app, first)
		app.Learned = nil
		for range size {
			app.Learned = append(app.Learned, document(20)...)
		}
		record(t, app, second)
		check.Equal(t, fmt.Sprintf("%d documents", size), first, second)
	}
	cm := configMap()
	app := running()
	app.Learned = []object{{"b": "<&>", "a": int64(1)}}
	record(t, app, cm)
	check.Equal(t, "what was learned", `[{"a":1,"b":"<&>"}]`, cm.Data["status.learned"])
}

// large returns a document of about this many bytes.
func large(bytes int) []object {
	return []object{{"text": strings.Repeat("x", bytes)}}
}

func TestLargeDocumentsAreCompressed(t *testing.T) {
	cm := configMap()
	app := running()
	app.LastObserved = application.Publishing(large(100 << 10))
	record(t, app, cm)
	_, isText := cm.Data["status.last_observed_manifest"]
	check.Equal(t, "a document of 100 KiB is stored as text", false, isText)
	if got := len(cm.BinaryData["status.last_observed_manifest"]); got == 0 || got > 10<<10 {
		t.Errorf("compressed it has %d bytes", got)
	}
	got, err := application.Read(cm)
	check.Must(t, err)
	check.Equal(t, "what is read", app.LastObserved, got.LastObserved)

	app.LastObserved = application.Publishing(large(10))
	record(t, app, cm)
	_, isLeft := cm.BinaryData["status.last_observed_manifest"]
	check.Equal(t, "the large document is left beside the small one", false, isLeft)
	check.Equal(t, "what was observed", `[{"text":"xxxxxxxxxx"}]`, cm.Data["status.last_observed_manifest"])
}

// Otherwise every user who may write a ConfigMap could make its agents allocate gigabytes.
func TestReadRefusesADocumentThatExpandsTooFar(t *testing.T) {
	var part bytes.Buffer
	w := gzip.NewWriter(&part)
	_, err := w.Write(bytes.Repeat([]byte(" "), 64<<20))
	check.Must(t, err)
	check.Must(t, w.Close())
	cm := configMap()
	cm.BinaryData = map[string][]byte{"status.learned": bytes.Repeat(part.Bytes(), 8)} // half a gigabyte
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	want := "expand status.learned: larger than 8388608 bytes"
	if app, err := application.Read(cm); err != nil || app.Damaged["status.learned"] == nil || app.Damaged["status.learned"].Error() != want {
		t.Errorf("Read: got %v, %v, want %s", app, err, want)
	}
	_, err = application.LearnedOf(cm, "local")
	check.Equal(t, "error of LearnedOf", want, check.Message(err))
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 256<<20 {
		t.Errorf("it was expanded first: %d bytes", allocated)
	}
}

func TestLearnedOf(t *testing.T) {
	cm := configMap()
	if got, err := application.LearnedOf(cm, "local"); got != nil || err != nil {
		t.Errorf("nothing was learned: got %v, %v", got, err)
	}
	record(t, running(), cm)
	got, err := application.LearnedOf(cm, "local")
	check.Must(t, err)
	check.Equal(t, "what was learned", running().Learned, got)
	if got, err := application.LearnedOf(cm, "edge"); got != nil || err != nil {
		t.Errorf("a value that one cluster has assigned counts for the other: got %v, %v", got, err)
	}
}

// What does not fit is omitted, in this order, and the status reports it. The inventory is
// always written, and a document that cannot fit stays as stored.
func TestRecordWithoutRoom(t *testing.T) {
	// Random, so that no compression helps.
	noise := func(size int) string {
		text := make([]byte, size)
		source := rand.New(rand.NewPCG(1, 2))
		for i := range text {
			text[i] = "abcdefghijklmnopqrstuvwxyz"[source.IntN(26)]
		}
		return string(text)
	}
	value := func(size int) []map[string]any { return []map[string]any{{"text": noise(size)}} }
	const most = 1 << 20
	cases := []struct {
		name                       string
		others                     int
		observed, history, learned bool
	}{
		{"all of it fits", 100 << 10, true, true, true},
		{"the observed fields do not", most - 100<<10, false, true, true},
		{"nor does the history", most - 45<<10, false, false, true},
		{"nor what was learned", most - 4<<10, false, false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cm := configMap()
			cm.Data["theirs"] = noise(c.others)
			app := &application.Application{
				NamespacedName: types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}, Cluster: "local", Holder: "local",
				LastObserved: application.Publishing(value(60 << 10)), Learned: value(20 << 10), LastApplied: application.Publishing(value(10 << 10)),
				Inventory: []manifest.ID{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "demo", Name: "config"}},
				Status: application.Status{
					State:   application.StateRunning,
					Drifts:  []application.Drift{{Repaired: noise(20 << 10)}},
					Objects: []application.ObjectStatus{{Message: noise(8 << 10), Hold: &application.Hold{Asked: "2026-01-02T15:04:05Z"}}, {Message: noise(1 << 10)}, {Ended: &application.Ended{State: "COMPLETED"}}},
				},
			}
			check.Must(t, app.Record(cm))
			size := 0
			for _, text := range cm.Data {
				size += len(text)
			}
			if size > most {
				t.Errorf("%d bytes", size)
			}
			got, err := application.Read(cm)
			check.Must(t, err)
			kept := slices.DeleteFunc(slices.Clone(got.Status.Objects), func(o application.ObjectStatus) bool { return o.Hold == nil && o.Ended == nil })
			if len(kept) != 2 || kept[0].Hold == nil || kept[1].Ended == nil {
				t.Errorf("objects: %+v (%v), and it is forgotten since when one is held", got.Status.Objects, got.Damaged)
			}
			found := []bool{len(got.LastObserved.Objects()) > 0, len(got.Status.Drifts) > 0, len(got.Learned) > 0, len(got.Inventory) > 0,
				meta.IsStatusConditionTrue(got.Status.Conditions, application.StatusTruncatedCondition)}
			want := []bool{c.observed, c.history, c.learned, true, !c.observed}
			check.Equal(t, "observed fields, history, what was learned, what is held, the condition", want, found)
		})
	}
}

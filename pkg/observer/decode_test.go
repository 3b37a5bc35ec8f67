package observer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/oddjson"
)

// looker returns Observers of one object that has been seen already.
func looker(t testing.TB, desired string, beside ...[]string) *Observers {
	t.Helper()
	o := New(t.Context(), Options{
		Now: func() time.Time { return time.Unix(0, 0) }, Logger: logr.Discard(), Summarised: []string{"spec", "status"},
		Summarise: func(live map[string]any) any { return fmt.Sprint(live["spec"], live["status"], live["kind"]) },
		OwnerOf: func(live map[string]any) (Owner, bool) {
			name := (&unstructured.Unstructured{Object: live}).GetLabels()[label]
			return Owner{Name: name}, name != ""
		},
	})
	if desired == "" {
		return o
	}
	observed, err := schema.Default(object(t, desired))
	kit.Must(t, err)
	for _, path := range beside {
		observed = observed.Observe(path...)
	}
	target := Target{Schema: observed, Marked: observed, Desired: manifest.Pack(object(t, desired)), Revision: "1"}
	target.Ref = manifest.Ref{ID: manifest.ID{APIVersion: "v1", Kind: "Song", Name: "x"}, Resource: configMaps}
	o.registry.setViewsLocked(keyOf(target), []*view{{owner: web, target: target}, {owner: other, target: target}})
	return o
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	kit.Must(t, utiljson.Unmarshal([]byte(text), &fields))
	return fields
}

// looked are pairs of desired fields and further observed fields.
var looked = []struct {
	desired string
	beside  [][]string
}{
	{},
	{`{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "x"}, "data": {"a": "1"}, "spec": {"replicas": 2}}`, nil},
	{`{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "x"}, "items": [{"a": 1}]}`, [][]string{{"metadata", "managedFields"}, {"metadata", "labels"}}},
}

// A partly decoded object leads to the same observation as the whole object.
func FuzzObject(f *testing.F) {
	for _, text := range oddjson.Oddities() {
		f.Add([]byte(text))
	}
	f.Add([]byte(song("1")))
	f.Add([]byte(song("2")))
	f.Fuzz(func(t *testing.T, text []byte) { checkObject(t, text, song("1")) })
}

// checkObject observes an object for the first time, and after others.
func checkObject(t *testing.T, text []byte, former string) {
	t.Helper()
	for _, looked := range looked {
		o := looker(t, looked.desired, looked.beside...)
		d := newDecoder(o.registry, configMaps)
		var live map[string]any
		wantErr := utiljson.Unmarshal(text, &live)
		got, err := d.record(bytes.Clone(text))
		if (err == nil) != (wantErr == nil) && (wantErr == nil || !oddjson.IsTooBig(wantErr)) {
			t.Errorf("the error is %v, want %v", err, wantErr)
		}
		if err != nil || wantErr != nil {
			return
		}
		want := any(bare(o.informers.source.transform(configMaps, &unstructured.Unstructured{Object: live}).(*record)))
		if got := bare(got); !reflect.DeepEqual(any(got), want) {
			t.Errorf("seen as\n%+v, want\n%+v", got, want)
		}
		for _, former := range []string{former, string(text)} {
			if !saw(o, d, former) {
				continue
			}
			if got, err := d.record(bytes.Clone(text)); err != nil || !reflect.DeepEqual(any(bare(got)), want) {
				t.Errorf("after %s seen as\n%+v, want\n%+v (%v)", former, got, want, err)
			}
		}
	}
}

// saw makes the object of the text the last one that all owners have seen.
func saw(o *Observers, d *decoder, text string) bool {
	seen, err := d.record([]byte(text))
	if err != nil {
		return false
	}
	for i, v := range o.registry.viewsLocked(seen.key(configMaps)) {
		v.last = seen.views[i].Observation
	}
	return true
}

// bare returns a record without fingerprints, which records of whole objects lack. Whole
// objects are written in one form.
func bare(of *record) *record {
	of.views = slices.Clone(of.views)
	for i := range of.views {
		of.views[i].fingerprint = 0
		if live := of.views[i].Live; live != nil {
			of.views[i].Live = wholeOf(live.Fields())
		}
	}
	return of
}

// The same holds for randomly damaged texts. This test runs without fuzzing.
func TestDamagedObjectsAreSeenAsTheLibraryReadsThem(t *testing.T) {
	seeds := append(oddjson.Oddities(), oddjson.Deployment(7), song("2"), song("1"))
	random, tries := rand.New(rand.NewPCG(1, 2)), 20_000
	if testing.Short() {
		tries = 5_000
	}
	for range tries {
		seed := seeds[random.IntN(len(seeds))]
		text := oddjson.Damage(random, seed)
		checkObject(t, text, seed)
		if t.Failed() {
			t.Fatalf("the text was %q", text)
		}
	}
}

// song returns an object that looked[1] wants, with this value.
func song(value string) string {
	return `{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "x", "uid": "u", "resourceVersion": "7", "labels": {"` + label + `": "me"},
		"managedFields": [{"manager": "m"}]}, "data": {"a": "` + value + `", "b": 2}, "spec": {"replicas": 2}, "status": {"phase": "x"}}`
}

// A stored record does not refer to the buffer, which the next object overwrites.
func TestARecordSharesNothingWithItsText(t *testing.T) {
	o := looker(t, looked[1].desired)
	d := newDecoder(o.registry, configMaps)
	text := []byte(`{"apiVersion": "v1", "kind": "Song", "metadata": {"name": "x", "uid": "u", "resourceVersion": "7"}, "data": {"a": "a longer value than those that are kept once"}, "spec": {"replicas": 3}}`)
	seen, err := d.record(text)
	kit.Must(t, err)
	before := fmt.Sprintf("%+v", seen)
	for i := range text {
		text[i] = 'x'
	}
	if after := fmt.Sprintf("%+v", seen); after != before {
		t.Errorf("the record has become %s, and was %s", after, before)
	}
}

package observer

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/check"
)

// Each used kind has one informer, whatever the number of owners and objects. It starts at the
// first use, and stops after the last.
func TestInformers(t *testing.T) {
	f := newFixture(t)
	const configMaps, services = "/v1, Resource=configmaps", "/v1, Resource=services"
	steps := []struct {
		name string
		do   func()
		want map[string]int // users of each kind
	}{
		{"nothing is watched that nobody wants", func() {}, map[string]int{}},
		{"the first need starts an informer",
			func() { f.observe(t, web, f.target("a")) }, map[string]int{configMaps: 1}},
		{"another object of the kind needs no other informer",
			func() { f.observe(t, web, f.target("a"), f.target("b")) }, map[string]int{configMaps: 2}},
		{"nor does another owner",
			func() { f.observe(t, other, f.target("a")) }, map[string]int{configMaps: 3}},
		{"another kind does",
			func() { f.observe(t, other, f.target("a"), f.service("a")) }, map[string]int{configMaps: 3, services: 1}},
		{"to want the same again changes nothing",
			func() { f.observe(t, other, f.target("a"), f.service("a")) }, map[string]int{configMaps: 3, services: 1}},
		{"Start may want less than Observe",
			func() { f.Start(other, []Target{f.target("a")}, nil) }, map[string]int{configMaps: 3}},
		{"an owner that leaves takes its own needs along",
			func() { f.Stop(web) }, map[string]int{configMaps: 1}},
		{"to stop twice, or before a start, is allowed",
			func() { f.Stop(web); f.Stop(sentinel) }, map[string]int{configMaps: 1}},
		{"the last owner stops the informer",
			func() { f.Stop(other) }, map[string]int{}},
		{"what was stopped can be started again",
			func() { f.observe(t, web, f.target("a")) }, map[string]int{configMaps: 1}},
	}
	informers := map[*informer]bool{}
	for _, step := range steps {
		step.do()
		maps.Copy(informers, f.running())
		check.Equal(t, step.name+": users", step.want, f.users())
	}
	check.Equal(t, "informers in all: one of Services, one of ConfigMaps, and one after that was stopped", 3, len(informers))
	f.Stop(web)
	for i := range informers {
		until(t, "an informer still runs", i.IsStopped)
	}
	check.Equal(t, "watched", 0, len(f.registry.watched))
	check.Equal(t, "owners", 0, len(f.registry.owners))
}

// Until all objects of a kind are known, the observers report none as absent. The owner is
// notified when they are known.
func TestNotSynced(t *testing.T) {
	f := newFixture(t)
	live := f.create(t, "there")
	targets := []Target{f.target("there"), f.target("absent")}
	for i, known := range f.Observe(web, targets) {
		if !errors.Is(known.Err, ErrNotSynced) {
			t.Fatalf("target %d: error is %v, want ErrNotSynced", i, known.Err)
		}
	}
	until(t, "the owner was not notified", func() bool { return f.count(web) > 0 })
	current := f.Observe(web, targets)
	if got := current[0]; got.UID != uidOf(live) || got.Differs() {
		t.Errorf("known of what is there: %+v", got)
	}
	check.Equal(t, "known of what is absent", Observation{}, current[1], seen)
}

// An observation under another target is no observation under this one. It is Stale, neither
// compared nor absent, until the object is read.
func TestRevisedTarget(t *testing.T) {
	f, _ := started(t)
	live := f.change(t, "web", `{"data": {"a": "2"}}`)
	f.flush(t)
	f.expect(t, web)

	target := wanting(revised(f.target("web")), map[string]any{"a": "2", "b": "1"})
	got := f.observe(t, web, target)[0]
	if !got.Stale || !got.Differs() || got.Live != nil || got.UID != uidOf(live) {
		t.Errorf("known is %+v, want that it exists, and is stale", got)
	}
	f.Start(web, []Target{target}, []map[string]any{live}) // read, and found to match
	f.expect(t)
	got = f.observe(t, web, target)[0]
	if got.Stale || got.Differs() {
		t.Errorf("known is %+v, want what was read", got)
	}
}

// An event that was compared with the former target, and arrives under the next one, has to be
// read again.
func TestRevisedTargetBetweenLookAndEvent(t *testing.T) {
	f, live := started(t)
	looked := f.informers.source.transform(configMaps, &unstructured.Unstructured{Object: next(next(live))})
	target := revised(f.target("web"))
	f.observe(t, web, target)
	f.Start(web, []Target{target}, []map[string]any{next(live)})
	f.expect(t)
	f.handle(looked)
	f.expect(t, web)
	if got := f.last(web, "web"); !got.Stale || got.ResourceVersion != versionOf(next(next(live))) {
		t.Errorf("last seen is %+v, want that the new version is stale", got)
	}
}

// An observation of one object does not count for another object of the same name.
func TestSeenOfAnother(t *testing.T) {
	f, live := started(t)
	f.observe(t, web, f.target("web"))
	elsewhere := (&unstructured.Unstructured{Object: drift(next(live))}).DeepCopy()
	elsewhere.SetNamespace("elsewhere")
	service := (&unstructured.Unstructured{Object: drift(next(live))}).DeepCopy()
	service.SetKind("Service")
	f.Start(web, []Target{f.target("web")}, []map[string]any{elsewhere.Object, service.Object})
	if got := f.last(web, "web"); got.ResourceVersion != versionOf(live) || got.Differs() {
		t.Errorf("last seen is %+v, want what was seen before", got)
	}
}

// seen compares the exported fields of an observation.
var seen = cmpopts.IgnoreUnexported(Observation{})

// The informer has stored the object while no owner wanted it, so only its existence is known:
// it is Stale, not absent.
func TestObjectFromBefore(t *testing.T) {
	f, _ := started(t)
	live := f.create(t, "other")
	f.flush(t)
	got := f.observe(t, other, f.target("other"))[0]
	got.Seen = time.Time{}
	want := Observation{UID: uidOf(live), ResourceVersion: versionOf(live), Stale: true}
	check.Equal(t, "known", want, got, seen)
}

// An owner is not notified of an object that it no longer wants.
func TestTargetThatLeft(t *testing.T) {
	f, _ := started(t)
	other := f.create(t, "other")
	targets := []Target{f.target("other")}
	f.observe(t, web, targets...)
	f.Start(web, targets, []map[string]any{other}) // whether or not its event has arrived
	f.expect(t)
	f.change(t, "web", `{"data": {"a": "2"}}`)
	f.flush(t)
	f.expect(t)
}

// A stopped owner, such as one whose objects are about to be deleted, gets no notification,
// and Start does not resume it.
func TestStopped(t *testing.T) {
	f, live := started(t)
	f.Stop(web)
	f.Start(web, []Target{f.target("web")}, []map[string]any{live})
	f.Observe(other, []Target{f.service("absent")})
	f.Stop(other) // before the kind is listed
	f.delete(t, "web")
	f.flush(t)
	f.expect(t)
	check.Equal(t, "users of a kind that was stopped before its first list", 0, f.users()["/v1, Resource=services"])
}

func TestSupersedes(t *testing.T) {
	seen := func(uid, version string) Observation {
		return Observation{UID: types.UID(uid), ResourceVersion: version}
	}
	cases := []struct {
		name        string
		now, former Observation
		want        bool
	}{
		{"the first sight", seen("a", "5"), Observation{}, true},
		{"created again after a deletion", seen("b", "6"), seen("", "5"), true},
		{"what was deleted since", seen("a", "5"), seen("", "6"), false},
		{"a deletion of which it is not known when", seen("a", "5"), seen("", ""), true},
		{"a newer version", seen("a", "6"), seen("a", "5"), true},
		{"an older one is of the past", seen("a", "5"), seen("a", "6"), false},
		{"the same one tells nothing new", seen("a", "5"), seen("a", "5"), false},
		{"versions are numbers, not texts", seen("a", "10"), seen("a", "9"), true},
		{"numbers of any size", seen("a", "18446744073709551616"), seen("a", "18446744073709551615"), true},
		{"the object that came after", seen("b", "6"), seen("a", "5"), true},
		{"the object that was before", seen("b", "5"), seen("a", "6"), false},
		{"versions that cannot be ordered are taken as they come", seen("a", "x"), seen("a", "5"), true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			check.Equal(t, "it supersedes", c.want, c.now.supersedes(c.former))
		})
	}
}

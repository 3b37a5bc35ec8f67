package observer

import (
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/krake-observer/krake-observer/test/check"
)

// The owners that are notified of an object's event. The owner web wants the object, and the
// owner other does not.
func TestEvents(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		do   func(t *testing.T, f *fixture)
		want []Owner
	}{
		{"a field that is not observed is anybody's", changeTo(`{"data": {"b": "2", "c": "1"}}`), nil},
		{"an observed value differs", changeTo(`{"data": {"a": "2"}}`), []Owner{web}},
		{"an observed field was removed", changeTo(`{"data": {"a": null}}`), []Owner{web}},
		{"a label of somebody else's is no concern", changeTo(`{"metadata": {"labels": {"team": "theirs"}}}`), nil},
		{"our label has another value: it is observed", changeTo(`{"metadata": {"labels": {"` + label + `": "no"}}}`), []Owner{web}},
		{"without our label the object is lost to the informer, and only a read can tell",
			changeTo(`{"metadata": {"labels": {"` + label + `": null}}}`), []Owner{web}},
		{"the object was deleted", func(t *testing.T, f *fixture) { f.delete(t, "web") }, []Owner{web}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, _ := started(t)
			f.has(t, other, "other")

			c.do(t, f)
			f.flush(t)
			f.expect(t, c.want...)
		})
	}
}

func changeTo(patch string) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		t.Helper()
		f.change(t, "web", patch)
	}
}

// The events of an owner that acts wait until Start. Start notifies it of the remaining
// changes, except those that it has seen itself.
func TestEventsWhileActing(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		act  func(t *testing.T, f *fixture) (seen []map[string]any)
		want []Owner
	}{
		{"nothing happened", func(*testing.T, *fixture) []map[string]any { return nil }, nil},
		{"its own write comes back as an event, which tells nothing new", func(t *testing.T, f *fixture) []map[string]any {
			return []map[string]any{f.change(t, "web", `{"data": {"b": "ours"}}`)}
		}, nil},
		{"drift after its own write is left to be reverted", func(t *testing.T, f *fixture) []map[string]any {
			live := f.change(t, "web", `{"data": {"b": "ours"}}`)
			f.change(t, "web", `{"data": {"a": "2"}}`)
			return []map[string]any{live}
		}, []Owner{web}},
		{"drift before its own write, which reverted it, is over", func(t *testing.T, f *fixture) []map[string]any {
			f.change(t, "web", `{"data": {"a": "2"}}`)
			return []map[string]any{f.change(t, "web", `{"data": {"a": "1"}}`)}
		}, nil},
		{"drift that somebody else has healed is over", func(t *testing.T, f *fixture) []map[string]any {
			f.change(t, "web", `{"data": {"a": "2"}}`)
			f.change(t, "web", `{"data": {"a": "1"}}`)
			return nil
		}, nil},
		{"drift that it has not looked at", func(t *testing.T, f *fixture) []map[string]any {
			f.change(t, "web", `{"data": {"a": "2"}}`)
			return nil
		}, []Owner{web}},
		{"the object was deleted", func(t *testing.T, f *fixture) []map[string]any {
			f.delete(t, "web")
			return nil
		}, []Owner{web}},
		{"the object was deleted after its own write: what it wrote is no more", func(t *testing.T, f *fixture) []map[string]any {
			live := f.change(t, "web", `{"data": {"b": "ours"}}`)
			f.delete(t, "web")
			return []map[string]any{live}
		}, []Owner{web}},
		{"the object was deleted, and it has created it again", func(t *testing.T, f *fixture) []map[string]any {
			f.delete(t, "web")
			return []map[string]any{f.create(t, "web")}
		}, nil},
		{"the object that it has created again was deleted too", func(t *testing.T, f *fixture) []map[string]any {
			f.delete(t, "web")
			live := f.create(t, "web")
			f.delete(t, "web")
			return []map[string]any{live}
		}, []Owner{web}},
		{"our label was removed, and it has put it back", func(t *testing.T, f *fixture) []map[string]any {
			f.change(t, "web", `{"metadata": {"labels": {"`+label+`": null}}}`)
			return []map[string]any{f.change(t, "web", `{"metadata": {"labels": {"`+label+`": "yes"}}}`)}
		}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, _ := started(t)
			f.observe(t, web, f.target("web"))
			seen := c.act(t, f)
			f.flush(t)
			f.expect(t) // it acts: no owner is notified
			f.Start(web, []Target{f.target("web")}, seen)
			f.expect(t, c.want...)
			f.flush(t)
			f.expect(t) // no late notification
		})
	}
}

// next returns a later version of the object, as an API server would number it.
func next(live map[string]any) map[string]any {
	object := (&unstructured.Unstructured{Object: live}).DeepCopy()
	version, err := strconv.Atoi(object.GetResourceVersion())
	if err != nil {
		panic(err) // resource versions are numbers
	}
	object.SetResourceVersion(strconv.Itoa(version + 1))
	return object.Object
}

// After a broken watch, the time of a deletion is unknown. The owner's own write may be older,
// so the owner reads the object once more.
func TestTombstoneWhileActing(t *testing.T) {
	f, live := started(t)
	targets := []Target{f.target("web")}
	f.observe(t, web, targets...)
	written := next(next(live))
	f.disappear(cache.DeletedFinalStateUnknown{Obj: f.informers.source.transform(configMaps, &unstructured.Unstructured{Object: live})})
	f.Start(web, targets, []map[string]any{written})
	f.expect(t, web)

	check.Equal(t, "the object is known", false, f.observe(t, web, targets...)[0].Exists())
	f.Start(web, targets, []map[string]any{written}) // read after the tombstone
	f.expect(t)
	check.Equal(t, "what the owner has read since is known", true, f.last(web, "web").Exists())
}

// A deletion and a new creation may arrive as one update. The new object is another one, and
// is compared as such.
func TestRecreatedInOneUpdate(t *testing.T) {
	f, live := started(t)
	another := (&unstructured.Unstructured{Object: next(live)}).DeepCopy()
	another.SetUID("another")
	another.SetLabels(map[string]string{label: "no"})
	f.event(another.Object)
	f.expect(t, web)
	if got := f.last(web, "web"); got.UID != "another" || got.Live == nil {
		t.Errorf("last seen is %+v, want the whole new object", got)
	}
	// A late deletion event of the former object does not affect the new one.
	f.disappear(f.informers.source.transform(configMaps, &unstructured.Unstructured{Object: live}))
	f.expect(t)
	check.Equal(t, "UID of what was last seen", "another", f.last(web, "web").UID)
}

// An event is outdated if the owner's own write is newer.
func TestOvertakenEvent(t *testing.T) {
	f, live := started(t)
	f.observe(t, web, f.target("web"))
	drifted, mended := drift(next(live)), next(next(live))
	f.Start(web, []Target{f.target("web")}, []map[string]any{mended})
	f.event(drifted)
	f.expect(t)
	if got := f.last(web, "web"); got.ResourceVersion != versionOf(mended) || got.Differs() {
		t.Errorf("last seen is %+v, want what the owner wrote", got)
	}
}

func drift(live map[string]any) map[string]any {
	object := (&unstructured.Unstructured{Object: live}).DeepCopy()
	object.Object["data"] = map[string]any{"a": "2"}
	return object.Object
}

// Two owners want different fields of one object: both are notified of changes to the fields
// of both.
func TestTwoOwners(t *testing.T) {
	f, live := started(t)
	wide := wanting(revised(f.target("web")), map[string]any{"a": "1", "b": "1"})
	f.observe(t, other, wide)
	f.Start(other, []Target{wide}, []map[string]any{live})

	f.change(t, "web", `{"data": {"b": "2"}}`)
	f.flush(t)
	f.expect(t, other)
	f.change(t, "web", `{"data": {"a": "2"}}`)
	f.flush(t)
	f.expect(t, web, other)
	f.delete(t, "web")
	f.flush(t)
	f.expect(t, web, other)
}

// The events of an informer that was replaced, or has not listed its objects yet, change
// nothing.
func TestEventsOfAnotherInformer(t *testing.T) {
	f, live := started(t)
	k, another := f.kindOf(configMaps), &informer{}
	f.registry.saw(k, another, nil, f.informers.source.transform(configMaps, &unstructured.Unstructured{Object: drift(next(live))}))
	f.registry.lost(k, another, f.informers.source.transform(configMaps, &unstructured.Unstructured{Object: live}))
	f.expect(t)
	if got := f.last(web, "web"); got.ResourceVersion != versionOf(live) || got.Differs() {
		t.Errorf("last seen is %+v, want what was seen before", got)
	}
}

// A whole object is stored only while it differs, and then completely.
func TestAnObjectIsStoredWhileItDiffers(t *testing.T) {
	f, _ := started(t)
	drifted := f.change(t, "web", `{"data": {"a": "2"}}`)
	f.flush(t)
	check.Equal(t, "stored while it differs", drifted, f.last(web, "web").Live.Fields())
	f.change(t, "web", `{"data": {"a": "1"}}`)
	f.flush(t)
	check.Equal(t, "stored when it matches again", map[string]any(nil), f.last(web, "web").Live.Fields())
}

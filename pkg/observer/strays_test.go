package observer

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// belongs is the annotation that names the owner of an object in these tests.
const belongs = "example.com/belongs-to"

func withOwners(options *Options, _ *rest.Config) {
	options.OwnerOf = func(live map[string]any) (Owner, bool) {
		said := (&unstructured.Unstructured{Object: live}).GetAnnotations()[belongs]
		namespace, name, ok := strings.Cut(said, "/")
		return Owner{Namespace: namespace, Name: name}, ok
	}
}

// say annotates an object with its owner.
func (f *fixture) say(t *testing.T, name string, owner Owner) {
	t.Helper()
	f.change(t, name, `{"metadata": {"annotations": {"`+belongs+`": "`+owner.String()+`"}}}`)
}

// The objects that are strays of web, which wants the object "web", and the owners that are
// notified.
func TestStrays(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		do    func(t *testing.T, f *fixture)
		want  []string
		heard []Owner
	}{
		{"an object says it is the owner's, and no target names it", func(t *testing.T, f *fixture) {
			f.create(t, "stray")
			f.say(t, "stray", web)
		}, []string{"stray"}, []Owner{web}},
		{"what is nobody's is no stray", func(t *testing.T, f *fixture) { f.create(t, "stray") }, nil, nil},
		{"what is another's is no stray of this one, and nobody hears of an owner that is not known", func(t *testing.T, f *fixture) {
			f.create(t, "stray")
			f.say(t, "stray", other)
		}, nil, nil},
		{"a target that says so is none", func(t *testing.T, f *fixture) { f.say(t, "web", web) }, nil, nil},
		{"it was deleted", func(t *testing.T, f *fixture) {
			f.create(t, "stray")
			f.say(t, "stray", web)
			f.delete(t, "stray")
		}, nil, []Owner{web}},
		{"it says it is another's now", func(t *testing.T, f *fixture) {
			f.create(t, "stray")
			f.say(t, "stray", web)
			f.say(t, "stray", other)
		}, nil, []Owner{web}},
		{"it became a target", func(t *testing.T, f *fixture) {
			f.create(t, "stray")
			f.say(t, "stray", web)
			f.flush(t)
			targets := []Target{f.target("web"), f.target("stray")}
			f.observe(t, web, targets...)
			f.Start(web, targets, nil)
		}, nil, []Owner{web}},
		{"it was a target, and the owner itself does not want it any more", func(t *testing.T, f *fixture) {
			f.say(t, "web", web)
			f.flush(t)
			targets := []Target{f.target("another")}
			f.observe(t, web, targets...)
			f.Start(web, targets, nil)
		}, []string{"web"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, _ := started(t, withOwners)
			c.do(t, f)
			f.flush(t)
			f.expect(t, c.heard...)
			var want []manifest.ID
			for _, name := range c.want {
				want = append(want, f.ref(name).ID)
			}
			check.Equal(t, "strays", want, idsOf(f.Strays(web)))
		})
	}
}

// A stray that appears while its owner acts waits as events do. A stray that was reported is
// not reported again, until it is gone.
func TestStrayWhileActing(t *testing.T) {
	t.Parallel()
	f, _ := started(t, withOwners)
	targets := []Target{f.target("web")}
	f.observe(t, web, targets...)
	f.create(t, "stray")
	f.say(t, "stray", web)
	f.flush(t)
	f.expect(t)
	f.Start(web, targets, nil)
	f.expect(t, web)

	f.change(t, "stray", `{"data": {"a": "2"}}`)
	f.flush(t)
	f.observe(t, web, targets...)
	f.Start(web, targets, nil)
	f.expect(t)

	f.delete(t, "stray")
	f.flush(t)
	f.expect(t, web)
}

// Strays that existed before the kind was observed are found by its first list.
func TestStrayFromBefore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withOwners)
	f.create(t, "stray")
	f.say(t, "stray", web)
	f.Observe(web, nil)
	f.Start(web, nil, nil)
	f.observe(t, other, f.target("web"))
	f.heardOf(t, web, other)
	check.Equal(t, "strays", []manifest.ID{f.ref("stray").ID}, idsOf(f.Strays(web)))
}

func idsOf(strays []Stray) []manifest.ID {
	var ids []manifest.ID
	for _, stray := range strays {
		ids = append(ids, stray.ID)
	}
	return ids
}

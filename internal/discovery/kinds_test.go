package discovery

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

var (
	deployment = manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"}
	widget     = manifest.ID{APIVersion: "example.com/v1", Kind: "Widget", Namespace: "demo", Name: "one"}
	appName    = types.NamespacedName{Namespace: "demo", Name: "app"}
	otherName  = types.NamespacedName{Namespace: "demo", Name: "other"}
)

// notice is a wake-up of an Application, and its time.
type notice struct {
	Owner string
	After time.Duration
}

// world is a target that serves what the test sets, and a clock.
type world struct {
	*Kinds

	lists   []*metav1.APIResourceList
	failure error
	// meanwhile is called during a request to the target.
	meanwhile func()
	rereads   int
	time      time.Time
	notices   []notice
	documents documents
}

// newWorld returns a target with built-in kinds, and these others.
func newWorld(others ...*metav1.APIResourceList) *world {
	w := &world{time: time.Unix(1e9, 0), meanwhile: func() {}}
	w.serve(others...)
	w.Kinds = NewKinds(w, func(owner types.NamespacedName, after time.Duration) {
		w.notices = append(w.notices, notice{owner.Name, after})
	}, func() time.Time { return w.time }, logr.Discard())
	return w
}

func (w *world) serve(others ...*metav1.APIResourceList) {
	w.lists = append([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "nodes", Kind: "Node"}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true}}},
	}, others...)
}

func (w *world) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	w.rereads++
	lists, failure := w.lists, w.failure
	w.meanwhile()
	var groups []*metav1.APIGroup
	for _, list := range lists {
		group, version, ok := strings.Cut(list.GroupVersion, "/")
		if !ok {
			group, version = "", list.GroupVersion
		}
		groups = append(groups, &metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{
			{GroupVersion: list.GroupVersion, Version: version},
		}})
	}
	return groups, lists, failure
}

func widgets(namespaced bool) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
		{Name: "widgets", Kind: "Widget", Namespaced: namespaced},
	}}
}

func (w *world) mustLocate(t *testing.T, id manifest.ID) schema.GroupVersionResource {
	t.Helper()
	object, err := w.Locate(appName, id)
	kit.Must(t, err)
	return object.Resource
}

func (w *world) missing(t *testing.T, id manifest.ID) {
	t.Helper()
	if object, err := w.Locate(appName, id); !meta.IsNoMatchError(err) {
		t.Fatalf("found %v, error %v", object, err)
	}
}

func (w *world) expect(t *testing.T, want ...notice) {
	t.Helper()
	check.Equal(t, "who has to look again", want, w.notices)
	w.notices = nil
}

// A kind is at the place where the target serves it. Its absence is an answer of the target,
// and never a guess.
func TestLocate(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("the own API server of the group is down")
	silent := func(w *world) {
		w.failure = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "example.com", Version: "v1"}: unavailable}}
	}
	for _, c := range []struct {
		name string
		set  func(w *world)
		id   manifest.ID
		want string // the resource, empty if there is none
		gone bool
	}{
		{"a built-in kind", nil, deployment, "deployments", false},
		{"one that no namespace has", nil, manifest.ID{APIVersion: "v1", Kind: "Node", Name: "n"}, "nodes", false},
		{"a group that is not there", nil, widget, "", true},
		{"a version that its group does not have", nil, manifest.ID{APIVersion: "apps/v1beta1", Kind: "Deployment", Name: "w"}, "", true},
		{"a kind in whatever version", nil, manifest.ID{APIVersion: "apps/", Kind: "Deployment", Namespace: "demo", Name: "w"}, "deployments", false},
		{"in whatever version, of a group that does not answer now", silent,
			manifest.ID{APIVersion: "example.com/", Kind: "Widget", Name: "w"}, "", false},
		{"a group that does not answer now is not gone", silent, widget, "", false},
		{"the others go on meanwhile", silent, deployment, "deployments", false},
		{"an API server that does not answer says nothing", func(w *world) { w.failure = unavailable }, widget, "", false},
		{"to whom discovery is forbidden, nothing is gone", func(w *world) { w.lists = nil }, widget, "", false},
		{"to whom the core alone is forbidden, neither", func(w *world) { w.lists = w.lists[1:] }, widget, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			if c.set != nil {
				c.set(w)
			}
			object, err := w.Locate(appName, c.id)
			if object.Resource.Resource != c.want || (err == nil) != (c.want != "") || meta.IsNoMatchError(err) != c.gone {
				t.Errorf("found %q, error %v", object.Resource.Resource, err)
			}
			if err == nil && object.ClusterScoped != (c.id.Namespace == "") {
				t.Errorf("cluster-scoped: %v", object.ClusterScoped)
			}
		})
	}
}

// For a kind that is served elsewhere, the error names where.
func TestVersionsThatAreServed(t *testing.T) {
	served := func(version, kind string) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{{Name: "things", Kind: kind}, {Name: "things/status", Kind: "Status"}}}
	}
	w := newWorld(served("policy/v1", "Budget"), served("a.example.org/v1", "Cluster"), served("b.example.org/v1beta1", "Cluster"),
		served("b.example.org/v1", "Cluster"), served("c.example.org/v1", "Cluster"), served("d.example.org/v1", "Cluster"))
	for _, c := range []struct{ version, kind, want string }{
		{"policy/v1beta1", "Budget", `no matches for kind "Budget" in version "policy/v1beta1": the cluster serves Budget in policy/v1`},
		{"v1", "Deployment", `no matches for kind "Deployment" in version "v1": the cluster serves Deployment in apps/v1`},
		{"v1", "Cluster", `no matches for kind "Cluster" in version "v1": the cluster serves Cluster in a.example.org/v1, b.example.org/v1, b.example.org/v1beta1, c.example.org/v1`},
		{"v1", "Status", `no matches for kind "Status" in version "v1"`},
	} {
		_, err := w.Locate(appName, manifest.ID{APIVersion: c.version, Kind: c.kind, Namespace: "demo", Name: "a"})
		if !meta.IsNoMatchError(err) {
			t.Errorf("%s: the kind does not count as missing: %v", c.kind, err)
		}
		check.Equal(t, "error", c.want, check.Message(err))
	}
}

// Known kinds are cached: a repair does not wait for discovery. Groups without a definition
// are requested again after ten minutes.
func TestFoundKindsAreRemembered(t *testing.T) {
	w := newWorld()
	w.mustLocate(t, deployment)
	w.failure = apierrors.NewServiceUnavailable("down")
	before := w.rereads
	w.time = w.time.Add(foundFor - time.Second)
	w.mustLocate(t, deployment)
	check.Equal(t, "requests for what is known", before, w.rereads)
	w.time = w.time.Add(time.Second)
	if _, err := w.Locate(appName, deployment); err == nil || w.rereads == before {
		t.Errorf("the target was not asked again, error %v", err)
	}
	check.Equal(t, "kind", "Deployment.apps", w.KindOf(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}))
	check.Equal(t, "a kind that is not known", "others.apps", w.KindOf(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "others"}))
}

// The target is asked every ten seconds for missing kinds, whatever the number of requests.
func TestMissingKindsCostLittle(t *testing.T) {
	w := newWorld()
	for range 60 {
		for range 20 {
			w.missing(t, widget)
		}
		w.time = w.time.Add(time.Second)
	}
	if got := w.rereads; got < 6 || got > 8 { // the first, one at once, and one every 10 s
		t.Errorf("the target was asked %d times in a minute", got)
	}
	w.serve(widgets(true)) // without an event
	w.time = w.time.Add(unknownFor)
	check.Equal(t, "found", "widgets", w.mustLocate(t, widget).Resource)
	if len(w.found) != 1 || len(w.asked) != 1 {
		t.Errorf("kept: %v, %v", w.found, w.asked)
	}
}

// A new definition wakes only the Applications that wait for a kind of its group. Until the
// target serves the kind, they look every second.
func TestKindsThatAppear(t *testing.T) {
	w := newWorld()
	w.missing(t, widget)
	_, err := w.Locate(otherName, deployment)
	kit.Must(t, err)
	w.Redefine("gadgets.example.org")
	w.expect(t)
	w.Redefine("widgets.example.com")
	w.expect(t, notice{"app", 0})
	w.missing(t, widget) // not served yet
	w.expect(t, notice{"app", settlingStep})
	w.serve(widgets(true))
	w.time = w.time.Add(settlingStep)
	w.mustLocate(t, widget)
	w.expect(t, notice{"app", settling - settlingStep}) // the answer may be outdated
	if _, known := w.found[widget.GroupVersionKind()]; known {
		t.Error("and is remembered")
	}
	w.time = w.time.Add(settling)
	w.mustLocate(t, widget)
	w.expect(t)
	if before := w.rereads; w.mustLocate(t, widget).Resource != "widgets" || w.rereads != before {
		t.Error("a kind that is there to stay is not remembered")
	}
}

// A kind that is removed, or returns with another scope, is reported at once. Other groups
// stay known.
func TestKindsThatChange(t *testing.T) {
	w := newWorld(widgets(true))
	w.mustLocate(t, widget)
	w.mustLocate(t, deployment)
	w.serve()
	w.Redefine("widgets.example.com")
	w.expect(t, notice{"app", 0})
	w.missing(t, widget)
	w.serve(widgets(false))
	w.Redefine("widgets.example.com")
	if object, err := w.Locate(appName, widget); err != nil || !object.ClusterScoped {
		t.Errorf("found %v, error %v", object, err)
	}
	if _, known := w.found[deployment.GroupVersionKind()]; !known {
		t.Error("the Deployments are forgotten as well")
	}
}

// An answer that was on its way while the definition changed is dropped.
func TestAnswersOfYesterdayAreNotKept(t *testing.T) {
	w := newWorld(widgets(true))
	w.meanwhile = func() {
		w.serve(widgets(false))
		w.Redefine("gadgets.example.org")
		w.meanwhile = func() {}
	}
	w.mustLocate(t, widget) // outdated
	if object, err := w.Locate(appName, widget); err != nil || !object.ClusterScoped {
		t.Errorf("found %v, error %v", object, err)
	}
}

// An answer that the target sent while a definition settled may be stale. Afterwards the
// target is asked again, once.
func TestAnswersThatWereReadWhileADefinitionSettledAreDropped(t *testing.T) {
	w := newWorld(widgets(true))
	w.mustLocate(t, widget)
	w.Redefine("widgets.example.com") // it is deleted, and the target still serves it
	w.mustLocate(t, widget)
	w.expect(t, notice{"app", 0}, notice{"app", settling})
	w.serve()
	w.time = w.time.Add(settling)
	w.missing(t, widget)
	before := w.rereads
	w.missing(t, widget)
	w.mustLocate(t, deployment)
	check.Equal(t, "requests for what is settled", before, w.rereads)
}

// An Application that is gone, or no longer needs the group, is not woken.
func TestForget(t *testing.T) {
	w := newWorld()
	w.missing(t, widget)
	w.Forget(appName)
	w.Redefine("widgets.example.com")
	w.expect(t)
	check.Equal(t, "Applications that are kept", 0, len(w.asked))
	for i := range 100 { // definitions come and go
		w.Redefine(string(rune('a'+i%26)) + ".group" + string(rune('a'+i)) + ".example.com")
		w.time = w.time.Add(time.Second)
	}
	if len(w.changed) > int(settling/time.Second) {
		t.Errorf("%d changes are kept", len(w.changed))
	}
}

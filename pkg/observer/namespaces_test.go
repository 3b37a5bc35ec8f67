package observer

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// paths are the paths of the requests that pass through a test's transport.
type paths struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (p *paths) option() func(*Options, *rest.Config) {
	return throughTransport(func(next http.RoundTripper) roundTrip {
		return func(request *http.Request) (*http.Response, error) {
			p.mu.Lock()
			p.seen[request.URL.Path] = true
			p.mu.Unlock()
			return next.RoundTrip(request)
		}
	})
}

func (p *paths) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.seen))
}

// asUser makes the observers act as a user who has only the rights of grant.
func asUser(name string) func(*Options, *rest.Config) {
	return func(_ *Options, config *rest.Config) { config.Impersonate = rest.ImpersonationConfig{UserName: name} }
}

// grant lets a user list and watch ConfigMaps in the namespace of the fixture.
func (f *fixture) grant(t *testing.T, user string) {
	t.Helper()
	plane.Kubectl(t, "create", "role", "watcher", "--namespace", f.namespace, "--resource=configmaps", "--verb=list,watch")
	plane.Kubectl(t, "create", "rolebinding", "watcher", "--namespace", f.namespace, "--role=watcher", "--user="+user)
}

// namespaceTarget wants a namespace, which is cluster-scoped.
func (f *fixture) namespaceTarget() Target {
	return targetOf(manifest.Ref{
		ID:       manifest.ID{APIVersion: "v1", Kind: "Namespace", Name: f.namespace},
		Resource: namespaces,
	}, map[string]any{})
}

// Each namespace has informers of its own. Only cluster-scoped kinds are listed in the whole
// cluster.
func TestInformersOfNamespaces(t *testing.T) {
	asked := &paths{seen: map[string]bool{}}
	f, elsewhere := newFixture(t, asked.option()), newFixture(t)
	f.Observers.options.Namespaces = []string{f.namespace, elsewhere.namespace}
	here, there := "in namespace "+f.namespace, "in namespace "+elsewhere.namespace
	steps := []struct {
		name string
		do   func()
		want map[string]int // users of each scope
	}{
		{"a namespace in which nobody wants anything is not watched",
			func() { f.observe(t, web, f.target("a")) }, map[string]int{"/v1, Resource=configmaps " + here: 1}},
		{"another object of the kind in the namespace needs no other informer",
			func() { f.observe(t, web, f.target("a"), f.target("b")) }, map[string]int{"/v1, Resource=configmaps " + here: 2}},
		{"one in another namespace does", func() { f.observe(t, other, elsewhere.target("a")) },
			map[string]int{"/v1, Resource=configmaps " + here: 2, "/v1, Resource=configmaps " + there: 1}},
		{"an object of the cluster is in no namespace", func() { f.observe(t, other, f.namespaceTarget()) },
			map[string]int{"/v1, Resource=configmaps " + here: 2, "/v1, Resource=namespaces": 1}},
		{"the last owner in a namespace stops its informer",
			func() { f.Stop(web) }, map[string]int{"/v1, Resource=namespaces": 1}},
		{"the last owner stops that of the cluster", func() { f.Stop(other) }, map[string]int{}},
	}
	for _, step := range steps {
		step.do()
		check.Equal(t, step.name+": users", step.want, f.users())
	}
	want := []string{
		"/api/v1/namespaces",
		"/api/v1/namespaces/" + f.namespace + "/configmaps",
		"/api/v1/namespaces/" + elsewhere.namespace + "/configmaps",
	}
	slices.Sort(want)
	check.Equal(t, "asked for", want, asked.all())
}

// users returns the number of users of each informer, by its scope.
func (f *fixture) users() map[string]int {
	f.registry.mu.RLock()
	defer f.registry.mu.RUnlock()
	users := map[string]int{}
	for s, k := range f.informers.kinds {
		users[s.String()] = k.users
	}
	return users
}

// Rights in a namespace are enough for its objects: for events, and to find lost events. A
// namespace without rights is an error of its own targets, and its owner is notified when the
// rights are granted.
func TestNamespaceWithoutRights(t *testing.T) {
	t.Parallel()
	elsewhere := newFixture(t)
	user := "watcher-of-" + elsewhere.namespace
	w := &watches{}
	f := newFixture(t, w.option, asUser(user))
	f.grant(t, user)
	f.Observers.options.Namespaces = []string{f.namespace, elsewhere.namespace}
	f.resyncs(t)
	live, unseen := f.create(t, "web"), elsewhere.create(t, "web")
	f.forbidden(t, other, elsewhere.target("web"))
	f.observe(t, web, f.target("web"))
	f.Start(web, []Target{f.target("web")}, []map[string]any{live})
	f.hears(t, web, other) // of the objects that are known now, and of those that are not

	f.change(t, "web", `{"data": {"a": "2"}}`)
	f.hears(t, web)
	w.losing(f, func(int) bool { return true })
	f.change(t, "web", `{"data": {"a": "3"}}`)
	f.hears(t, web)
	f.converges(t)
	f.forbidden(t, other, elsewhere.target("web"))

	elsewhere.grant(t, user)
	f.ResyncNow()
	f.hears(t, other)
	check.Equal(t, "UID of what is known", uidOf(unseen), f.observe(t, other, elsewhere.target("web"))[0].UID)
}

// hears waits until at least these owners are notified. The API server may change the text of
// a refusal, which notifies others.
func (f *fixture) hears(t *testing.T, owners ...Owner) {
	t.Helper()
	for _, owner := range owners {
		until(t, owner.Name+" was not notified", func() bool { return f.count(owner) > 0 })
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = nil
}

// forbidden waits until the observers know that the API server refuses the kind of a target.
func (f *fixture) forbidden(t *testing.T, owner Owner, target Target) {
	t.Helper()
	kit.Eventually(t, func() string {
		if err := f.Observe(owner, []Target{target})[0].Err; !apierrors.IsForbidden(err) {
			return "the error is not that it is forbidden: " + check.Message(err)
		}
		return ""
	})
}

// A target outside the namespaces is an error. No request is sent for it, whatever the rights
// are.
func TestNamespaceThatIsNotWatched(t *testing.T) {
	asked := &paths{seen: map[string]bool{}}
	elsewhere := newFixture(t)
	f := newFixture(t, asked.option(), func(options *Options, _ *rest.Config) { options.Resync = 100 * time.Millisecond })
	f.Observers.options.Namespaces = []string{f.namespace}
	f.resyncs(t)
	for range 2 {
		err := f.Observe(other, []Target{elsewhere.target("web")})[0].Err
		check.Equal(t, check.Message(err)+": it is ErrNamespace", true, errors.Is(err, ErrNamespace))
	}
	f.ResyncNow()
	f.observe(t, web, f.target("web"))
	f.Stop(other)
	if slices.ContainsFunc(asked.all(), func(path string) bool { return strings.Contains(path, elsewhere.namespace) }) {
		t.Errorf("asked for %s", asked.all())
	}
	check.Equal(t, "users", map[string]int{"/v1, Resource=configmaps in namespace " + f.namespace: 1}, f.users())
}

package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/krake-observer/krake-observer/internal/apply"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

const deployer = "system:serviceaccount:demo:krake-deployer"

var (
	theDeployer = reconcile.Account{Namespace: "demo", Name: "krake-deployer"}
	theMap      = manifest.Ref{
		ID:       manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: "demo", Name: "settings"},
		Resource: gvr.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	}
)

// office is an API server with one ConfigMap and some ServiceAccounts. It answers every write
// with the ConfigMap, and records each request with its user.
type office struct {
	config *rest.Config

	mu          sync.Mutex
	accounts    map[string]int // the code of the answer, by namespace/name; 410 is an account that is being deleted
	object      map[string]any // nil: it does not exist
	mayGet      bool           // what reviews answer
	review      string         // the last review
	asked       []string       // "POST configmaps system:serviceaccount:demo:krake-deployer"
	connections atomic.Int32
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{accounts: map[string]int{}, object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "demo", "name": "settings", "resourceVersion": "1", "uid": "u"},
	}}
	server := httptest.NewUnstartedServer(o)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			o.connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	o.config = &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
	return o
}

func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") {
		o.answerReview(w, r)
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // api v1 namespaces demo configmaps settings
	as := strings.Join(r.Header.Values("Impersonate-User"), ",")
	for header := range r.Header {
		if strings.HasPrefix(header, "Impersonate-") && header != "Impersonate-User" {
			as += " with " + header
		}
	}
	o.asked = append(o.asked, strings.TrimSpace(r.Method+" "+parts[4]+" "+as))
	w.Header().Set("Content-Type", "application/json")
	switch {
	case parts[4] == "serviceaccounts":
		o.answerAccount(w, parts[3], parts[5])
	case o.object == nil:
		answer(w, http.StatusNotFound, apierrors.NewNotFound(gvr.GroupResource{Resource: parts[4]}, "settings").Status())
	default:
		answer(w, http.StatusOK, o.object)
	}
}

func (o *office) answerReview(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	var review authorizationv1.SubjectAccessReview
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &review); err != nil {
		panic(err)
	}
	o.asked = append(o.asked, strings.TrimSpace("POST subjectaccessreviews "+r.Header.Get("Impersonate-User")))
	o.review = fmt.Sprint(review.Spec.User, " ", review.Spec.Groups, " ", *review.Spec.ResourceAttributes)
	review.Status.Allowed = o.mayGet
	w.Header().Set("Content-Type", "application/json")
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
	answer(w, http.StatusCreated, review)
}

func (o *office) answerAccount(w http.ResponseWriter, namespace, name string) {
	code, ok := o.accounts[namespace+"/"+name]
	account := map[string]any{"namespace": namespace, "name": name}
	switch {
	case !ok:
		answer(w, http.StatusNotFound, apierrors.NewNotFound(gvr.GroupResource{Resource: "serviceaccounts"}, name).Status())
		return
	case code == http.StatusForbidden:
		answer(w, code, apierrors.NewForbidden(gvr.GroupResource{Resource: "serviceaccounts"}, name, errors.New("no")).Status())
		return
	case code == http.StatusGone:
		account["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	answer(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

// seen returns the requests since the last call.
func (o *office) seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	asked := o.asked
	o.asked = nil
	return asked
}

func (o *office) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

func newTestAccounts(t *testing.T, o *office) (*Accounts, *clocktesting.FakePassiveClock) {
	t.Helper()
	own := dynamic.NewForConfigOrDie(o.config)
	a, err := NewAccounts(o.config, apply.New(own, "krake-agent", func(string) {}), "krake-agent", func(string) {})
	kit.Must(t, err)
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	a.present, a.readable = cache.NewLRUExpireCacheWithClock(maxAccounts, clock), cache.NewLRUExpireCacheWithClock(maxGrants, clock)
	return a, clock
}

// The agent acts only as service accounts of namespaces for Applications.
func TestUserOf(t *testing.T) {
	for _, test := range []struct{ why, namespace, name, want string }{
		{"an account", "demo", "krake-deployer", deployer},
		{"names of accounts have dots", "demo", "a.b", "system:serviceaccount:demo:a.b"},
		{"nobody would be the agent", "", "", ""},
		{"no namespace", "", "a", ""},
		{"no name", "demo", "", ""},
		{"a name that goes on in another namespace", "demo", "a:b", ""},
		{"a namespace that has a name in it", "demo:a", "b", ""},
		{"a line of its own, and so a header", "demo", "a\r\nImpersonate-Group: system:masters", ""},
		{"what would be escaped", "demo", "é", ""},
		{"longer than any name", "demo", strings.Repeat("a", 254), ""},
		{"accounts of Kubernetes", "kube-system", "krake-deployer", ""},
		{"the agents, which the policies know by their group", "krake-agents", "krake-deployer", ""},
		{"the webhook", "krake-system", "krake-webhook", ""},
	} {
		got, err := userOf(test.namespace, test.name)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, %v", test.why, got, err)
		}
	}
}

// No write goes out as the agent. The client sends every write as the account, and only reads as
// the agent. Its requests use the agent's connection.
func TestNoWriteGoesOutAsTheAgent(t *testing.T) {
	o := newOffice(t)
	client, err := newImpersonated(o.config, "demo", "krake-deployer")
	kit.Must(t, err)
	own := dynamic.NewForConfigOrDie(o.config)
	object := &unstructured.Unstructured{Object: o.object}
	configMaps := client.Resource(theMap.Resource).Namespace("demo")
	for _, test := range []struct {
		want string
		do   func() error
	}{
		{"POST configmaps " + deployer, func() error { _, err := configMaps.Create(t.Context(), object, metav1.CreateOptions{}); return err }},
		{"PATCH configmaps " + deployer, func() error {
			_, err := configMaps.Patch(t.Context(), "settings", types.JSONPatchType, []byte("[]"), metav1.PatchOptions{})
			return err
		}},
		{"DELETE configmaps " + deployer, func() error { return configMaps.Delete(t.Context(), "settings", metav1.DeleteOptions{}) }},
		{"PUT configmaps " + deployer, func() error { _, err := configMaps.Update(t.Context(), object, metav1.UpdateOptions{}); return err }},
		{"PUT configmaps " + deployer, func() error {
			_, err := configMaps.UpdateStatus(t.Context(), object, metav1.UpdateOptions{})
			return err
		}},
		{"DELETE configmaps " + deployer, func() error {
			return configMaps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		}},
		{"GET configmaps", func() error { _, err := configMaps.Get(t.Context(), "settings", metav1.GetOptions{}); return err }},
		{"POST configmaps", func() error { // the agent's own client is unchanged
			_, err := own.Resource(theMap.Resource).Namespace("demo").Create(t.Context(), object, metav1.CreateOptions{})
			return err
		}},
	} {
		check.Must(t, test.do())
		check.Equal(t, "requests", []string{test.want}, o.seen())
	}
	check.Equal(t, "connections", 1, o.connections.Load())
}

// A connection that already impersonates a user is not used for an account: the request would
// have the groups of both.
func TestImpersonationTwice(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1", Impersonate: rest.ImpersonationConfig{UserName: "anna", Groups: []string{"system:masters"}}}
	_, err := newImpersonated(config, "demo", "krake-deployer")
	check.Fails(t, "a client", err, "already impersonates a user")
}

// FuzzImpersonated: for any names, there is either no client or a client of exactly this
// account. The account is the one that an API server decodes from the request.
func FuzzImpersonated(f *testing.F) {
	for _, seed := range [][2]string{
		{"demo", "krake-deployer"}, {"", ""}, {"demo", ""}, {"", "a"}, {"demo", "a:b"}, {"demo:a", "b"}, {"demo", "a\r\nImpersonate-Group: system:masters"},
		{" demo", "a"}, {"demo", "a\x00"}, {"kube-system", "a"}, {"demo", "%61"}, {"demo", strings.Repeat("a.", 200)},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, namespace, name string) {
		var sent http.Header
		config := &rest.Config{Host: "http://127.0.0.1:1", Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			sent = r.Header
			return nil, errors.New("nobody is there")
		})}
		client, err := newImpersonated(config, namespace, name)
		if err != nil {
			return
		}
		err = client.Resource(theMap.Resource).Namespace("demo").Delete(t.Context(), "settings", metav1.DeleteOptions{})
		if err == nil || sent == nil {
			t.Fatalf("nothing was sent: %v", err)
		}
		user := sent.Values("Impersonate-User")
		if len(user) != 1 || strings.TrimSpace(user[0]) != user[0] {
			t.Fatalf("the user is %q", user)
		}
		check.Equal(t, "the user", []string{"system", "serviceaccount", namespace, name}, strings.Split(user[0], ":"))
		check.Empty(t, "groups", sent.Values("Impersonate-Group"))
	})
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A write is sent as the account, or not at all. A missing account is detected before the
// first write of a pass, and no other identity writes.
func TestAccounts(t *testing.T) {
	create := func(t *testing.T, target reconcile.Cluster) error {
		_, err := target.Create(t.Context(), theMap, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}})
		return err
	}
	repair := func(t *testing.T, target reconcile.Cluster) error {
		_, err := target.Patch(t.Context(), theMap, nil, func(map[string]any) (schema.Patch, error) {
			return schema.Patch{{Op: "add", Path: "/data", Value: map[string]any{}}}, nil
		})
		return err
	}
	leave := func(t *testing.T, target reconcile.Cluster) error {
		_, err := target.Patch(t.Context(), theMap, nil, func(map[string]any) (schema.Patch, error) { return nil, nil })
		return err
	}
	remove := func(t *testing.T, target reconcile.Cluster) error {
		_, err := target.Delete(t.Context(), theMap, func(map[string]any) error { return nil })
		return err
	}
	foreign := func(t *testing.T, target reconcile.Cluster) error {
		_, err := target.Delete(t.Context(), theMap, func(map[string]any) error { return errors.New("not ours") })
		return err
	}
	there := func(o *office) { o.accounts["demo/krake-deployer"] = http.StatusOK }
	const read, look = "GET configmaps", "GET serviceaccounts"
	for _, test := range []struct {
		why     string
		account reconcile.Account
		office  func(*office)
		do      func(*testing.T, reconcile.Cluster) error
		want    []string
		wantErr string
	}{
		{"the agent writes as itself where no account is asked for", reconcile.Account{}, func(*office) {}, create, []string{"POST configmaps"}, ""},
		{"the account creates", theDeployer, there, create, []string{look, "POST configmaps " + deployer}, ""},
		{"repairs", theDeployer, there, repair, []string{read, look, "PATCH configmaps " + deployer}, ""},
		{"deletes", theDeployer, there, remove, []string{read, look, "DELETE configmaps " + deployer, read}, ""},
		{"and where there is none nobody creates", theDeployer, func(*office) {}, create, []string{look}, "no such service account"},
		{"nor repairs", theDeployer, func(*office) {}, repair, []string{read, look}, "no such service account"},
		{"nor deletes", theDeployer, func(*office) {}, remove, []string{read, look}, "no such service account"},
		{"one that is being deleted is none", theDeployer, func(o *office) { o.accounts["demo/krake-deployer"] = http.StatusGone }, create,
			[]string{look}, "no such service account"},
		{"that of another namespace is another one", theDeployer, func(o *office) { o.accounts["other/krake-deployer"] = http.StatusOK }, create,
			[]string{look}, "no such service account"},
		{"who cannot look does not write", theDeployer, func(o *office) { o.accounts["demo/krake-deployer"] = http.StatusForbidden }, create,
			[]string{look}, "look for service account demo/krake-deployer"},
		{"what is as it should be needs no account", theDeployer, func(*office) {}, leave, []string{read}, ""},
		{"nor does what is gone: an account is often gone before", theDeployer, func(o *office) { o.object = nil }, remove, []string{read}, ""},
		{"nor what is going", theDeployer, func(o *office) {
			o.object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}, remove, []string{read, read}, ""},
		{"nor what is not ours", theDeployer, func(*office) {}, foreign, []string{read}, "not ours"},
	} {
		t.Run(test.why, func(t *testing.T) {
			o := newOffice(t)
			test.office(o)
			a, _ := newTestAccounts(t, o)
			target, err := a.As(t.Context(), test.account)
			kit.Must(t, err)
			err = test.do(t, target)
			check.Fails(t, "the write", err, test.wantErr)
			check.Equal(t, "there is no account", strings.HasPrefix(test.wantErr, "no such"), errors.Is(err, reconcile.ErrNoAccount))
			check.Equal(t, "requests", test.want, o.seen())
		})
	}
}

// The existence of an account is cached for a while, its absence for one pass at most.
func TestAccountsAreLookedFor(t *testing.T) {
	o := newOffice(t)
	a, clock := newTestAccounts(t, o)
	pass := func(why string, wantLooks int, wantMissing bool) {
		t.Helper()
		target, err := a.As(t.Context(), theDeployer)
		kit.Must(t, err)
		for range 3 {
			_, err = target.Create(t.Context(), theMap, o.object)
			check.Equal(t, why+": there is no account", wantMissing, errors.Is(err, reconcile.ErrNoAccount))
		}
		looks := 0
		for _, request := range o.seen() {
			if request == "GET serviceaccounts" {
				looks++
			}
		}
		check.Equal(t, why+": looks", wantLooks, looks)
	}
	pass("one look for three objects", 1, true)
	pass("the next pass looks again", 1, true)
	o.set(func() { o.accounts["demo/krake-deployer"] = http.StatusOK })
	pass("whoever creates it is served at once", 1, false)
	pass("it is there for a while", 0, false)
	o.set(func() { delete(o.accounts, "demo/krake-deployer") })
	clock.SetTime(clock.Now().Add(presentFor - time.Second))
	pass("so long one that is deleted is acted as", 0, false)
	clock.SetTime(clock.Now().Add(2 * time.Second))
	pass("and not for ever", 1, true)
}

// Users choose the names of accounts, so the cache is bounded. A client is created once.
func TestAccountsAreBounded(t *testing.T) {
	a, _ := newTestAccounts(t, newOffice(t))
	for i := range maxAccounts + 100 {
		_, err := a.As(t.Context(), reconcile.Account{Namespace: "demo", Name: fmt.Sprintf("a%d", i)})
		kit.Must(t, err)
	}
	check.Equal(t, "writers that are kept", maxAccounts, a.writers.Len())
	first, err := a.writesOf(theDeployer)
	kit.Must(t, err)
	if again, err := a.writesOf(theDeployer); err != nil || again != first {
		t.Errorf("another writer, %v", err)
	}
	for _, account := range []reconcile.Account{{Name: "a"}, {Namespace: "demo"}, {Namespace: "kube-system", Name: "a"}} {
		if target, err := a.As(t.Context(), account); err == nil {
			t.Errorf("%v gives %v", account, target)
		}
	}
}

// The agent itself asks whether an account may get a kind. It caches the right for a while, and no refusal. An
// account that does not exist is named as the reason.
func TestMayRead(t *testing.T) {
	o := newOffice(t)
	a, clock := newTestAccounts(t, o)
	const review, look = "POST subjectaccessreviews", "GET serviceaccounts"
	ask := func(want error, requests ...string) {
		t.Helper()
		check.Equal(t, "error", want, a.MayRead(t.Context(), theDeployer, theMap), cmpopts.EquateErrors())
		check.Equal(t, "requests", requests, o.seen())
	}
	ask(reconcile.ErrNoAccount, review, look)
	o.set(func() { o.accounts["demo/krake-deployer"] = http.StatusOK })
	ask(reconcile.ErrUnreadable, review, look)
	o.set(func() { o.mayGet = true })
	ask(nil, review)
	ask(nil)
	check.Equal(t, "review", deployer+" [system:serviceaccounts system:serviceaccounts:demo system:authenticated] {demo get  v1 configmaps   nil nil}",
		strings.ReplaceAll(o.review, "<nil>", "nil"))
	secret := manifest.Ref{ID: manifest.ID{APIVersion: "v1", Kind: "Secret", Namespace: "demo", Name: "vault"}, Resource: gvr.GroupVersionResource{Version: "v1", Resource: "secrets"}}
	check.Equal(t, "error", nil, a.MayRead(t.Context(), theDeployer, secret)) // by name: a right to one is none to another
	if !strings.Contains(o.review, " secrets  vault ") {
		t.Errorf("review of a Secret: %s", o.review)
	}
	o.seen()
	o.set(func() { o.mayGet = false })
	clock.SetTime(time.Unix(0, 0).Add(presentFor + time.Second))
	ask(reconcile.ErrUnreadable, review, look)
}

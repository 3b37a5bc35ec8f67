package ui

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

const address = "127.0.0.1:4711"

// noon is the present time in these tests.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fake is a Source that answers with what a test has set.
type fake struct {
	application Application
	object      Object
	said        string
	draft       Draft
	forecast    Forecast
	err         error

	mu sync.Mutex
	// asked are the arguments of all calls.
	asked []any
}

func (f *fake) ask(arguments ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, arguments...)
	return f.err
}

func (f *fake) Follow(ctx context.Context, _ func(Change)) error {
	<-ctx.Done()
	return nil
}

func (f *fake) Application(_ context.Context, name types.NamespacedName) (Application, error) {
	return f.application, f.ask(name)
}

func (f *fake) Object(_ context.Context, ref Ref, _ bool) (Object, error) {
	return f.object, f.ask(ref)
}

func (f *fake) Watch(ctx context.Context, ref Ref, _ string, changed func()) error {
	if ref.Object.Name == "forbidden" {
		return problem("you may not watch it")
	}
	changed()
	<-ctx.Done()
	return f.ask(ref)
}

func (f *fake) Explain(_ context.Context, ref Ref, place schema.Path) (string, error) {
	return f.said, f.ask(ref, place)
}

func (f *fake) Draft(_ context.Context, ref Ref, _ []lens.Toggle) (Draft, error) {
	return f.draft, f.ask(ref)
}

func (f *fake) Forecast(_ context.Context, name, text string) (Forecast, error) {
	return f.forecast, f.ask(name, text)
}

func newServer(source Source) *Server {
	return New(source, "https://hub.example:6443", address, func() time.Time { return noon })
}

func nameOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "demo", Name: name}
}

func refOf(application, kind, name string) Ref {
	return Ref{nameOf(application), manifest.ID{APIVersion: "apps/v1", Kind: kind, Namespace: "demo", Name: name}}
}

// request returns a request of a program that knows the port only.
func request(method, target string, form url.Values) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, target, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Host = address
	return r
}

// own returns a request of the page itself, with its cookie.
func own(s *Server, method, target string, form url.Values) *http.Request {
	r := request(method, target, form)
	addCookie(r, s.guard.cookieName(), s.guard.secret)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method != http.MethodGet {
		r.Header.Set("Origin", "http://"+address)
	}
	return r
}

func addCookie(r *http.Request, name, value string) { r.Header.Add("Cookie", name+"="+value) }

func answer(s *Server, r *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, r)
	return recorder
}

// visit is a request to a page, or to a part of one.
type visit struct {
	name, method, target string
	form                 url.Values
	isPart               bool
}

func (v visit) request(s *Server) *http.Request { return own(s, v.method, v.target, v.form) }

// visits are the pages of an object. Streams are not among them: they do not end.
func visits(ref Ref) []visit {
	application, object := "/application?"+queryOf(ref.Application).Encode(), ref.query()
	toggles := ref.query()
	toggles.Set("toggle", "0:spec/replicas")
	return []visit{
		{name: "overview", method: http.MethodGet, target: "/"},
		{name: "application", method: http.MethodGet, target: application},
		{name: "application of an hour", method: http.MethodGet, target: application + "&zoom=1h"},
		{name: "object", method: http.MethodGet, target: "/object?" + object.Encode()},
		{name: "object with private values", method: http.MethodGet, target: "/object?" + object.Encode() + "&private=1"},
		{name: "before", method: http.MethodGet, target: "/before"},
		{name: "forecast", method: http.MethodPost, target: "/before", form: url.Values{"name": {ref.Application.Name}, "manifest": {ref.Object.Name}}},
		{name: "explain", method: http.MethodGet, target: "/object/explain?" + object.Encode() + "&place=" + "spec", isPart: true},
		{name: "draft", method: http.MethodPost, target: "/object/schema", form: toggles, isPart: true},
		{name: "nothing", method: http.MethodGet, target: "/object"},
	}
}

var _ Source = (*fake)(nil)

package hooks

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// A client that reaches the port may send anything, here even with the right certificate.
// Every request gets an answer without a panic, and only the right token succeeds.
func FuzzHandler(f *testing.F) {
	const token = "the-token-of-web"
	path := application.HookPath(web, "complete")
	for _, seed := range []struct{ method, path, contentType, body string }{
		{"PUT", path, "application/json", `{"token": "the-token-of-web"}`},
		{"PUT", path, "application/json; charset=utf-8", `{"token": "the-token-of-we"}`},
		{"PUT", path, "application/json", `{"token": null, "more": [1, {}]}`},
		{"PUT", path, "application/json", `{"Token": "the-token-of-web"}`},
		{"PUT", path, "application/json", `{"token": "a", "token": "the-token-of-web"}`},
		{"PUT", path, "text/plain", ``},
		{"GET", path, "", `[[[[[[`},
		{"PUT", "/kubernetes/namespaces/demo/applications/web/retry", "application/json", `{"token": ""}`},
		{"PUT", "/kubernetes/namespaces/demo/applications/%2e%2e/shutdown", "application/json", `{}`},
		{"OPTIONS", "*", "application/json", strings.Repeat("x", 5<<10)},
	} {
		f.Add(seed.method, seed.path, seed.contentType, seed.body)
	}
	log := &lines{}
	clock := clocktesting.NewFakeClock(time.Now())
	asked := &actions{}
	server, err := NewServer(ServerOptions{
		Applications: &applications{known: map[types.NamespacedName]*application.Application{web: {
			NamespacedName: web, UID: "u1",
			Spec:  application.Spec{Hooks: application.Hooks{Complete: true}},
			Hooks: application.HookRecord{Tokens: map[application.Hook]string{application.Complete: application.DigestOf([]byte(token))}},
		}}},
		Actions: asked, Now: clock.Now, Registerer: prometheus.NewRegistry(), Logger: funcr.New(log.add, funcr.Options{Verbosity: 10}),
	})
	if err != nil {
		f.Fatal(err)
	}
	id := identityOf(web, "u1", application.Complete)
	uri, err := url.Parse(id.uri)
	if err != nil {
		f.Fatal(err)
	}
	certificate := &x509.Certificate{URIs: []*url.URL{uri}}
	certificate.Subject.CommonName = id.user
	state := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate}}}

	f.Fuzz(func(t *testing.T, method, path, contentType, body string) {
		asked.done()
		log.text.Reset()
		clock.Step(time.Second)
		sent := &http.Request{
			Method: method, URL: &url.URL{Path: path}, Header: http.Header{"Content-Type": {contentType}}, RemoteAddr: "10.0.0.1:80", TLS: state,
			Body: httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", strings.NewReader(body)).Body, ContentLength: -1,
		}
		recorder := httptest.NewRecorder()
		server.ServeHTTP(recorder, sent)
		var told struct {
			Code int `json:"code"`
		}
		if err := json.Unmarshal(recorder.Body.Bytes(), &told); err != nil || recorder.Code != http.StatusOK && told.Code != recorder.Code {
			t.Fatalf("%d %s: %v", recorder.Code, recorder.Body, err)
		}
		var said struct {
			Token string `json:"token"`
		}
		isRight := json.Unmarshal([]byte(body), &said) == nil && said.Token == token
		if done := len(asked.done()); recorder.Code == http.StatusOK != (done == 1) || done == 1 && !isRight {
			t.Fatalf("%d, %d done", recorder.Code, done)
		}
		if recorder.Code == http.StatusInternalServerError {
			t.Fatalf("a panic: %s", log)
		}
		if strings.Contains(log.String(), token) {
			t.Fatalf("the log has the token: %s", log)
		}
	})
}

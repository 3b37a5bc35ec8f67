package hooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/internal/pki"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// A Pod that has only the data of the two Secrets is accepted.
func TestPodsAreHeard(t *testing.T) {
	w := newWorld(t)
	app, pods := w.run("web")
	app.Status.State = application.StateDegraded
	for _, test := range []struct {
		hook   application.Hook
		action string
		state  string
	}{
		{application.Complete, "complete", "DELETING"},
		{application.Shutdown, "shutdown", "DEGRADED"},
		{application.Shutdown, "retry", "DEGRADED"},
	} {
		pod := pods[test.hook]
		url := strings.TrimSuffix(pod.url, string(test.hook)) + test.action
		got, err := w.send(request{url: url, body: pod.body(), files: pod.files})
		kit.Must(t, err)
		want := `{"apiVersion":"krake.dev/v1","kind":"Application",` +
			`"metadata":{"name":"web","namespace":"demo","uid":"uid-of-web"},"status":{"state":"` + test.state + `"}}` + "\n"
		if diff := cmp.Diff(want, got.body); diff != "" || got.code != http.StatusOK {
			t.Errorf("%s: %d, -want +got:\n%s", test.action, got.code, diff)
		}
		check.Equal(t, test.action+": done", []string{test.action + " demo/web"}, w.actions.done())
	}
}

// Each refusal has its code, a reason and a remedy, and has no effect.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	app, pods := w.run("web")
	_, others := w.run("other")
	complete, shutdown := pods[application.Complete], pods[application.Shutdown]
	right := request{url: complete.url, body: complete.body(), files: complete.files}
	path := func(path string) func(*request) {
		return func(r *request) { r.url = "https://" + w.address + path }
	}
	body := func(body string) func(*request) { return func(r *request) { r.body = body } }
	for _, test := range []struct {
		why    string
		change func(*request)
		want   int
		header map[string]string
	}{
		{"another path", path("/"), 404, nil},
		{"a hook that there is not", path("/kubernetes/namespaces/demo/applications/web/start"), 404, nil},
		{"a hook in other letters", path("/kubernetes/namespaces/demo/applications/web/Complete"), 404, nil},
		{"no DNS name", path("/kubernetes/namespaces/demo/applications/WEB/complete"), 404, nil},
		{"an escaped slash", path("/kubernetes/namespaces/demo/applications/a%2fb/complete"), 404, nil},
		{"a step upwards", path("/kubernetes/namespaces/demo/applications/x/../web/complete"), 404, nil},
		{"a marker in the path", path("/kubernetes/namespaces/demo/applications/" + marker + "/complete"), 404, nil},

		{"an Application that there is not", path("/kubernetes/namespaces/demo/applications/nobody/complete"), 401, nil},
		{"one of another namespace", path("/kubernetes/namespaces/prod/applications/web/complete"), 401, nil},

		{"to ask is not to tell", func(r *request) { r.method = http.MethodGet }, 405, map[string]string{"Allow": "PUT"}},
		{"a method that nobody knows", func(r *request) { r.method = "BREW" }, 405, map[string]string{"Allow": "PUT"}},

		{"text", func(r *request) { r.contentType = "text/plain" }, 415, nil},
		{"two types", func(r *request) { r.contentType = "application/json, text/plain" }, 415, nil},

		{"5 KiB", body(`{"token": "` + strings.Repeat("x", 5<<10) + `"}`), 413, nil},
		{"5 KiB, and nobody has said so before", func(r *request) {
			r.body, r.chunked = `{"token": "`+strings.Repeat("x", 5<<10)+`"}`, true
		}, 413, nil},

		{"no body", body(""), 400, nil},
		{"no JSON", body("token=" + marker), 400, nil},
		{"a list", body(`["` + complete.token + `"]`), 400, nil},
		{"two objects", body(complete.body() + complete.body()), 400, nil},
		{"a token twice", body(`{"token": "x", "token": "` + complete.token + `"}`), 400, nil},
		{"a number", body(`{"token": 5}`), 400, nil},
		{"compressed", func(r *request) { r.body, r.header = "\x1f\x8b\x08", map[string]string{"Content-Encoding": "gzip"} }, 400, nil},

		{"no token", body(`{}`), 401, nil},
		{"an empty token", body(`{"token": ""}`), 401, nil},
		{"a field of nearly the name", body(`{"Token": "` + complete.token + `"}`), 401, nil},
		{"a wrong token", body(`{"token": "` + marker + `"}`), 401, nil},
		{"the digest of the token", body(`{"token": "` + app.Hooks.Tokens[application.Complete] + `"}`), 401, nil},
		{"the token of another hook", body(shutdown.body()), 401, nil},
		{"the token of another Application", body(others[application.Complete].body()), 401, nil},
		{"the token in a header and in the query, where it does not belong", func(r *request) {
			r.body, r.url = `{"token": "`+marker+`"}`, r.url+"?token="+complete.token
			r.header = map[string]string{"Authorization": "Bearer " + complete.token}
		}, 401, nil},
		{"neither token nor certificate", func(r *request) { r.body, r.files = `{}`, nil }, 401, nil},

		{"no certificate", func(r *request) { r.files = nil }, 401, nil},
		{"the certificate of another hook", func(r *request) { r.files = shutdown.files }, 401, nil},
		{"the certificate of another Application", func(r *request) { r.files = others[application.Complete].files }, 401, nil},

		{"retry of what runs", func(r *request) {
			*r = request{url: strings.Replace(shutdown.url, "shutdown", "retry", 1), body: shutdown.body(), files: shutdown.files}
		}, 400, nil},
		{"retry with the token of complete", func(r *request) {
			*r = request{url: strings.Replace(shutdown.url, "shutdown", "retry", 1), body: complete.body(), files: shutdown.files}
		}, 401, nil},
		{"retry with the certificate of complete", func(r *request) {
			*r = request{url: strings.Replace(shutdown.url, "shutdown", "retry", 1), body: shutdown.body(), files: complete.files}
		}, 401, nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			w.clock.Step(1e9) // avoids the limit of requests
			changed := right
			test.change(&changed)
			got, err := w.send(changed)
			kit.Must(t, err)
			var told refusal
			if err := json.Unmarshal([]byte(got.body), &told); err != nil {
				t.Fatalf("%q: %v", got.body, err)
			}
			if got.code != test.want || told.Code != test.want || told.Reason == "" || told.Message == "" {
				t.Errorf("got %d %+v, want %d", got.code, told, test.want)
			}
			for name, value := range test.header {
				check.Equal(t, name, value, got.header.Get(name))
			}
			check.Empty(t, "done", w.actions.done())
		})
	}
}

// An unauthenticated caller does not learn which Applications exist: an unknown Application, a wrong
// token and a missing client certificate have the same answer. Without a certificate of the
// Application's name, nothing is read, so the time does not tell either.
func TestAnswersDoNotTellWhichApplicationsExist(t *testing.T) {
	w, pod := newWorldWithPod(t)
	_, others := w.run("other")
	unknown := strings.Replace(pod.url, "/web/", "/nobody/", 1)
	var first answered
	for _, test := range []struct {
		why   string
		sent  request
		reads int
	}{
		{"an unknown Application", request{url: unknown, body: pod.body()}, 0},
		{"an unknown Application, with the certificate of another one", request{url: unknown, body: pod.body(), files: pod.files}, 0},
		{"a wrong token", request{url: pod.url, body: `{"token": "` + marker + `"}`}, 0},
		{"a missing client certificate", request{url: pod.url, body: pod.body()}, 0},
		{"the certificate of another Application", request{url: pod.url, body: pod.body(), files: others[application.Complete].files}, 0},
		{"a wrong token, with the certificate", request{url: pod.url, body: `{"token": "` + marker + `"}`, files: pod.files}, 1},
	} {
		before := w.apps.reads()
		got, err := w.send(test.sent)
		kit.Must(t, err)
		got.header.Del("Date")
		if first.code == 0 {
			first = got
			check.Equal(t, test.why, http.StatusUnauthorized, got.code)
		}
		check.Equal(t, test.why+": the answer", fmt.Sprint(first), fmt.Sprint(got))
		check.Equal(t, test.why+": Applications read", test.reads, w.apps.reads()-before)
	}
	w.apps.fails = ErrAnotherActs
	got, err := w.send(request{url: pod.url, body: pod.body()})
	kit.Must(t, err)
	check.Equal(t, "the answer of a replica that does not act", first.code, got.code)
}

// The sender chooses the form of the request, and its fields beside the token.
func TestWaysToSayIt(t *testing.T) {
	w, pod := newWorldWithPod(t)
	for why, change := range map[string]func(*request){
		"a charset":                     func(r *request) { r.contentType = "Application/JSON; charset=utf-8" },
		"a field of a later version":    func(r *request) { r.body = `{"reason": "done", "token": "` + pod.token + `"}` },
		"spaces and lines":              func(r *request) { r.body = "\n\t " + pod.body() + "\r\n" },
		"escapes":                       func(r *request) { r.body = `{"\u0074oken": "` + pod.token + `"}` },
		"a length that is not said":     func(r *request) { r.chunked = true },
		"exactly as large as it may be": func(r *request) { r.body += strings.Repeat(" ", maxBody-len(r.body)) },
		"a query that says nothing":     func(r *request) { r.url += "?verbose" },
	} {
		changed := pod.request()
		change(&changed)
		w.checkCode(why, changed, http.StatusOK)
	}
}

// A valid token is accepted in every state, and an invalid one in none.
func TestEveryState(t *testing.T) {
	states := []application.State{
		"", "PENDING", "TRANSLATING", "CREATING", "RECONCILING", "RUNNING", "WAITING_FOR_CLEANING", "READY_FOR_ACTION", "MIGRATING",
		"DELETING", "DELETED", "DEGRADED", "FAILED", "RESTARTING", "COMPLETED", "WAITING_FOR_CLUSTER_CREATION", "RETRYING",
	}
	w := newWorld(t)
	app, pods := w.run("web")
	_, others := w.run("other")
	known, enabled := app.Hooks.Tokens, app.Spec.Hooks
	for _, state := range states {
		for _, hook := range enabled.Enabled() {
			for _, test := range []struct {
				why   string
				token string
				set   func()
				want  int
			}{
				{"the right token", pods[hook].token, func() {}, 200},
				{"a wrong token", marker, func() {}, 401},
				{"that of another Application", others[hook].token, func() {}, 401},
				{"a hook that is off", pods[hook].token, func() { app.Spec.Hooks = application.Hooks{} }, 401},
				{"no token recorded", pods[hook].token, func() { app.Hooks.Tokens = nil }, 401},
				{"nothing against nothing", "", func() { app.Hooks.Tokens = nil }, 401},
				{"nothing against an empty digest", "", func() { app.Hooks.Tokens = map[application.Hook]string{hook: "sha256:"} }, 401},
				{"nothing against the digest of nothing", "", func() {
					app.Hooks.Tokens = map[application.Hook]string{hook: application.DigestOf(nil)}
				}, 401},
				{"a token that is recorded as it is", pods[hook].token, func() {
					app.Hooks.Tokens = map[application.Hook]string{hook: pods[hook].token}
				}, 401},
			} {
				app.Status.State, app.Hooks.Tokens, app.Spec.Hooks = state, known, enabled
				test.set()
				w.clock.Step(1e9)
				sent := request{url: pods[hook].url, body: `{"token": "` + test.token + `"}`, files: pods[hook].files}
				w.checkCode(fmt.Sprintf("%s, %s, %s", state, hook, test.why), sent, test.want)
			}
		}
	}
}

// An Application that was deleted and created again refuses the Pods of the former one.
func TestFormerApplication(t *testing.T) {
	w := newWorld(t)
	app, pods := w.run("web")
	app.UID = "another"
	w.checkCode("the request", pods[application.Complete].request(), http.StatusUnauthorized)
}

// A temporary failure asks the client to try later, and only the log has the reason. A replica that does not act for the
// Application sends the client to another one, which it may reach next.
func TestUnavailable(t *testing.T) {
	reason := errors.New("the reason that is for the log")
	for why, test := range map[string]struct {
		fail              func(*world)
		after, says, logs string
	}{
		"the hub does not answer": {func(w *world) { w.apps.fails = reason }, "5", "", reason.Error()},
		"it cannot be done":       {func(w *world) { w.actions.fails = reason }, "5", "", reason.Error()},
		"another replica acts":    {func(w *world) { w.apps.fails = ErrAnotherActs }, "1", "another replica", ""},
	} {
		w, pod := newWorldWithPod(t)
		test.fail(w)
		got, err := w.send(pod.request())
		kit.Must(t, err)
		check.Equal(t, why+": code", http.StatusServiceUnavailable, got.code)
		check.Equal(t, why+": Retry-After", test.after, got.header.Get("Retry-After"))
		if strings.Contains(got.body, reason.Error()) || !strings.Contains(got.body, test.says) || !strings.Contains(w.log.String(), test.logs) {
			t.Errorf("%s: %s, and the log says %s", why, got.body, w.log)
		}
	}
}

// A proven request is carried out, whether or not the Pod waits for the answer: it may be gone
// by then.
func TestPodThatDoesNotWait(t *testing.T) {
	w, pod := newWorldWithPod(t)
	pair, err := pki.ParsePair(pod.files["cert.pem"], pod.files["key.pem"])
	kit.Must(t, err)
	ctx, gone := context.WithCancel(t.Context())
	gone()
	sent := httptest.NewRequestWithContext(ctx, http.MethodPut, pod.url, strings.NewReader(pod.body()))
	sent.Header.Set("Content-Type", "application/json")
	sent.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{pair.Leaf}}}
	w.actions.wait = make(chan struct{})
	go close(w.actions.wait)
	w.server.ServeHTTP(httptest.NewRecorder(), sent)
	check.Equal(t, "done", []string{"complete demo/web"}, w.actions.done())
}

// A panic also leads to an answer, which contains nothing of the request.
func TestPanic(t *testing.T) {
	w, pod := newWorldWithPod(t)
	w.server.options.Actions = panics{}
	w.checkCode("the request", pod.request(), http.StatusInternalServerError)
	if !strings.Contains(w.log.String(), "panics.Complete") {
		t.Errorf("the log does not say where: %s", w.log)
	}
}

type panics struct{ Actions }

func (panics) Complete(context.Context, *application.Application) (application.State, error) {
	panic(marker)
}

// The log records each call with its sender, and the metric counts the calls.
func TestLogAndMetric(t *testing.T) {
	w, pod := newWorldWithPod(t)
	w.code(pod.request())
	w.code(request{url: pod.url, body: `{}`, files: pod.files})
	w.code(request{url: "https://" + w.address + "/" + marker})
	for _, want := range []string{
		`"msg"="a hook was called" "application"="demo/web" "hook"="complete" "status"=200 "source"="127.0.0.1:`,
		`"msg"="a hook was called" "application"="demo/web" "hook"="complete" "status"=401 "source"="127.0.0.1:`,
	} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("%s is not in the log:\n%s", want, w.log)
		}
	}
	families, err := w.registry.Gather()
	kit.Must(t, err)
	counted := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		counted[metric.GetLabel()[1].GetValue()+" "+metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
	}
	if diff := cmp.Diff(map[string]float64{"complete 200": 1, "complete 401": 1, "none 404": 1}, counted); diff != "" || families[0].GetName() != "krake_agent_hook_requests_total" {
		t.Errorf("%s: -want +got:\n%s", families[0].GetName(), diff)
	}
}

// A server that stops completes its pending answers.
func TestStop(t *testing.T) {
	w, pod := newWorldWithPod(t)
	w.actions.wait = make(chan struct{})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(ctx, inner) }()
	code := make(chan int, 1)
	go func() {
		code <- w.code(request{url: strings.Replace(pod.url, w.address, inner.Addr().String(), 1), body: pod.body(), files: pod.files})
	}()
	kit.EventuallyTrue(t, "the request is worked on", func() bool {
		if !w.server.working.TryAcquire(atOnce) {
			return true
		}
		w.server.working.Release(atOnce)
		return false
	})
	stop()
	kit.EventuallyTrue(t, "nobody listens", func() bool {
		_, err := w.send(request{url: "https://" + inner.Addr().String()})
		return err != nil
	})
	close(w.actions.wait)
	check.Equal(t, "code", http.StatusOK, <-code)
	check.Must(t, <-ended)
}

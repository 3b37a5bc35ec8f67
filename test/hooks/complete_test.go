package hooks

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// job is a workload that reports its completion.
const job = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: before, image: "web:1"}]
      containers: [{name: web, image: "web:1", env: [{name: OTHER, value: "1"}]}, {name: beside, image: "web:1"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: green}
`

// An Application reports its completion with only what its container has. It is deleted
// with all its objects and Secrets, even if it has the hook shutdown.
func TestComplete(t *testing.T) {
	t.Parallel()
	for name, hooks := range map[string]string{"alone": "complete", "beside shutdown": "complete,shutdown"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			a := newApp(t, namespace, "web", job, wishes{"hooks": hooks})
			a.MustBe(t, application.StateRunning)
			p := mustStartPod(t, env.hub, namespace, "web")
			if url := "https://krake-hooks.krake-agents.svc/kubernetes/namespaces/" + namespace + "/applications/web/complete"; p.says(application.Complete).url != url {
				t.Errorf("the URL is %q, want %q", p.says(application.Complete).url, url)
			}
			if want := 2 + 2*len(strings.Split(hooks, ",")); len(a.objects(t, env.hub)) != want {
				t.Errorf("it has %v, want %d objects", a.objects(t, env.hub), want)
			}
			got := p.mustAnswer(t, env.local, "complete", p.says(application.Complete), http.StatusOK)
			if got.state != application.StateReady {
				t.Errorf("it is %s, want %s", got.state, application.StateReady)
			}
			a.mustGo(t, env.hub)
			p.mustAnswer(t, env.local, "once more, when it is gone", p.says(application.Complete), http.StatusNotFound)
		})
	}
}

// state is a state of an Application, with the way to reach it.
type state struct {
	state    application.State
	manifest string
	wishes   wishes
	then     func(t *testing.T, a app)
}

// pending is a workload whose Pods do not start.
var pending = strings.Replace(job, "metadata: {labels: {app: web}}", "metadata: {labels: {app: web}, annotations: {"+cluster.PhaseAnnotation+": Pending}}", 1)

// reached has the states of the table that an Application can have without a running
// Pod, and for long enough. PENDING, CREATING, RECONCILING and READY_FOR_ACTION are too
// short. RESTARTING and COMPLETED need a kubelet. In TRANSLATING no token exists yet.
// TestMoves covers MIGRATING.
func reached() map[string]state {
	deleted := func(t *testing.T, a app) { t.Helper(); a.Delete(t) }
	return map[string]state{
		"running":         {state: application.StateRunning, manifest: job},
		"no Pod starts":   {state: application.StateDegraded, manifest: pending},
		"refused objects": {state: application.StateFailed, manifest: job + "---\n{apiVersion: v1, kind: Service, metadata: {name: broken}, spec: {type: Unknown, ports: [{port: 80}]}}\n"},
		"asked to shut down": {
			state: application.StateWaiting, manifest: job + shutdownService, wishes: wishes{"shutdown-grace-time": "1h"}, then: deleted,
		},
		"given up": {state: application.StateDegraded, manifest: job + shutdownService, wishes: wishes{"shutdown-grace-time": "1s"}, then: deleted},
		"being deleted": {
			state: application.StateDeleting, manifest: job, wishes: wishes{"shutdown-failure-strategy": "delete", "shutdown-grace-time": "1s"},
			then: func(t *testing.T, a app) {
				t.Helper()
				finalize(t, a.Namespace, `["example.org/kept"]`)
				a.Delete(t)
			},
		},
	}
}

const shutdownService = `---
{apiVersion: v1, kind: Service, metadata: {name: shutdown}, spec: {selector: {app: web}, ports: [{port: 80}]}}
`

// A client without the token of this hook of this Application gets the answer 401 in
// every state, and nothing changes.
func TestWrongTokens(t *testing.T) {
	t.Parallel()
	elsewhere := newNamespace(t)
	newApp(t, elsewhere, "web", job, wishes{"hooks": "complete,shutdown"}).MustBe(t, application.StateRunning)
	other := mustStartPod(t, env.hub, elsewhere, "web")
	for name, state := range reached() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			env.local.put(t, namespace, heard)
			a := newApp(t, namespace, "web", state.manifest, wishes{"hooks": "complete,shutdown"}.and(state.wishes))
			p := mustStartPod(t, env.hub, namespace, "web")
			if state.then != nil {
				a.MustBe(t, application.StateRunning)
				state.then(t, a)
			}
			a.MustBe(t, state.state)
			before := a.Stored(t)
			for _, hook := range []application.Hook{application.Complete, application.Shutdown} {
				checkTokens(t, p, other, hook)
			}
			retry := p.says(application.Shutdown).with("wrong").to("retry")
			p.mustAnswer(t, env.local, "retry with a wrong token", retry, http.StatusUnauthorized)
			if after := a.Stored(t); after == nil || after.UID != before.UID || after.DeletionTimestamp.IsZero() != before.DeletionTimestamp.IsZero() {
				t.Fatalf("the Application has become %v", after)
			}
			if complaint := a.Is(t, state.state); complaint != "" {
				t.Error(complaint)
			}
			p.mustAnswer(t, env.local, "the right token", p.says(application.Complete), http.StatusOK)
			if state.state == application.StateDeleting {
				finalize(t, namespace, "null")
			}
			a.mustGo(t, env.hub)
		})
	}
}

// finalize sets the finalizers of an object of the Application, as another client.
func finalize(t *testing.T, namespace, finalizers string) {
	t.Helper()
	env.hub.Change(t, kit.ConfigMaps, namespace, "settings", `{"metadata": {"finalizers": `+finalizers+`}}`)
}

// checkTokens calls a hook with every token except its own.
func checkTokens(t *testing.T, p, other pod, hook application.Hook) {
	t.Helper()
	right := p.says(hook)
	mate := application.Complete
	if hook == mate {
		mate = application.Shutdown
	}
	for what, token := range map[string]string{
		"no token": "", "a wrong token": "wrong", "part of the token": p.token(hook)[:42], "the digest": application.DigestOf([]byte(p.token(hook))),
		"the token of the other hook": p.token(mate), "the token of another Application": other.token(hook),
	} {
		p.mustAnswer(t, env.local, string(hook)+" with "+what, right.with(token), http.StatusUnauthorized)
	}
	foreign := right
	foreign.url = other.says(hook).url
	p.mustAnswer(t, env.local, string(hook)+" of another Application", foreign, http.StatusUnauthorized)
}

// A hook that is not enabled refuses every token.
func TestHooksThatAreOff(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	a := newApp(t, namespace, "web", job, wishes{"hooks": "complete"})
	a.MustBe(t, application.StateRunning)
	p := mustStartPod(t, env.hub, namespace, "web")
	right := p.says(application.Complete)
	for _, action := range []string{"shutdown", "retry"} {
		for _, token := range []string{"", p.token(application.Complete)} {
			p.mustAnswer(t, env.local, action, right.with(token).to(action), http.StatusUnauthorized)
		}
	}
	a.Annotate(t, "hooks", "")
	kit.Eventually(t, func() string { // the agent deletes its Secrets and variables
		if read := a.Read(t); read.Status.ObservedSpec != read.Spec.Digest() || len(a.objects(t, env.hub)) > 2 {
			return fmt.Sprintf("it has still %v", a.objects(t, env.hub))
		}
		return ""
	})
	p.mustAnswer(t, env.local, "a hook that was on", right, http.StatusUnauthorized)
	a.Annotate(t, "hooks", "complete")
	kit.Eventually(t, func() string { // another token: the earlier one may be known
		again, err := podOf(t.Context(), env.hub, namespace, "web")
		if err != nil || again.token(application.Complete) == "" {
			return fmt.Sprintf("no token: %v", err)
		}
		return ""
	})
	a.MustBe(t, application.StateRunning)
	p.mustAnswer(t, env.local, "the token of before", right, http.StatusUnauthorized)
	a.Delete(t)
	a.mustGo(t, env.hub)
}

// The spec decides, and not what the agent has recorded: the record of a suspended
// Application stays unchanged.
func TestHooksThatAreOffWhileSuspended(t *testing.T) {
	t.Parallel()
	kit.Long(t, "waits for what must not happen")
	namespace := newNamespace(t)
	a := newApp(t, namespace, "web", job, wishes{"hooks": "complete,shutdown"})
	a.MustBe(t, application.StateRunning)
	p := mustStartPod(t, env.hub, namespace, "web")
	a.Annotate(t, "mode", "suspend")
	p.mustAnswer(t, env.local, "a hook that is on", p.says(application.Shutdown), http.StatusOK)
	a.Annotate(t, "hooks", "complete")
	kit.Eventually(t, func() string { // the agent sees the change
		got, err := p.send(t.Context(), env.local, p.says(application.Shutdown))
		if err != nil || got.code != http.StatusUnauthorized {
			return fmt.Sprintf("a hook that is off: %v, %d: %s", err, got.code, got.text)
		}
		return ""
	})
	p.mustAnswer(t, env.local, "retry of a hook that is off", p.says(application.Shutdown).to("retry"), http.StatusUnauthorized)
	p.mustAnswer(t, env.local, "the other hook", p.says(application.Complete), http.StatusOK)
	a.Annotate(t, "mode", "enforce")
	a.mustGo(t, env.hub)
}

// The endpoint answers every malformed request with an error. This test has its own
// agent, because the hub does not answer that for a while.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	const namespace = "endpoint"
	for _, each := range planes() {
		each.CreateNamespace(t, namespace)
	}
	s := enrol(t, "endpoint", env.east, []string{namespace})
	wire, err := installation.NewWire(env.hub.RESTConfig())
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, wire.Close()) })
	through(t, &s.Hub, wire)
	s.ready(t)
	a := newApp(t, namespace, "web", job, wishes{"hooks": "complete", "cluster": s.Name})
	other := newApp(t, namespace, "other", strings.ReplaceAll(strings.ReplaceAll(job, "web", "other"), "settings", "others"), wishes{"hooks": "complete", "cluster": s.Name})
	a.MustBe(t, application.StateRunning)
	other.MustBe(t, application.StateRunning)
	p, foreign := mustStartPod(t, env.east, namespace, "web"), mustStartPod(t, env.east, namespace, "other")
	right := p.says(application.Complete)
	for what, row := range map[string]struct {
		change func(*request)
		code   int
	}{
		"another method":           {func(r *request) { r.method = http.MethodPost }, http.StatusMethodNotAllowed},
		"another path":             {func(r *request) { r.url += "/now" }, http.StatusNotFound},
		"another action":           {func(r *request) { *r = r.to("delete") }, http.StatusNotFound},
		"an unknown Application":   {func(r *request) { r.url = strings.Replace(r.url, "/web/", "/unknown/", 1) }, http.StatusNotFound},
		"no JSON by its type":      {func(r *request) { r.contentType = "text/plain" }, http.StatusUnsupportedMediaType},
		"no JSON":                  {func(r *request) { r.body = "token" }, http.StatusBadRequest},
		"a list":                   {func(r *request) { r.body = "[" + r.body + "]" }, http.StatusBadRequest},
		"a body of 5 KiB":          {func(r *request) { r.body += strings.Repeat(" ", 5<<10) }, http.StatusRequestEntityTooLarge},
		"no client certificate":    {func(r *request) { r.noCertificate = true }, http.StatusForbidden},
		"neither that nor a token": {func(r *request) { *r = r.with(""); r.noCertificate = true }, http.StatusUnauthorized},
	} {
		changed := right
		row.change(&changed)
		p.mustAnswer(t, s, what, changed, row.code)
	}
	stolen := right // the token, from a client with the certificate of another Application
	foreign.mustAnswer(t, s, "the certificate of another Application", stolen, http.StatusForbidden)

	checkSilentHub(t, s, wire, p, right)
	if complaint := a.Is(t, application.StateRunning); complaint != "" {
		t.Error(complaint)
	}
	kit.Must(t, p.insist(t.Context(), s, right))
	a.mustGo(t, env.hub, env.east)
	other.Delete(t)
	other.mustGo(t, env.hub, env.east)
}

// checkSilentHub calls the endpoint while the hub does not answer. The caller gets a
// Retry-After, and not a verdict.
func checkSilentHub(t *testing.T, s *spoke, wire *installation.Wire, p pod, right request) {
	t.Helper()
	wire.Cut()
	got := p.mustAnswer(t, s, "while the hub is away", right, http.StatusServiceUnavailable)
	if got.header.Get("Retry-After") == "" {
		t.Error("nobody says when to try again")
	}
	p.mustAnswer(t, s, "a wrong token while the hub is away", right.with("wrong"), http.StatusUnauthorized)
	kit.Must(t, wire.Mend())
	if cm := (app{env.hub.App("endpoint", "web")}).Stored(t); cm == nil || cm.DeletionTimestamp != nil {
		t.Error("the Application is going")
	}
}

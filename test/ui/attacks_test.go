package ui

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The attacks of this file are those of web pages and values, in a real browser. internal/ui has those of
// other programs.

// A page of another origin can neither read the page, nor send it a form, nor put it into a frame.
func TestAnotherOriginReadsNothing(t *testing.T) {
	needBrowser(t)
	app := running(t)
	s := serve(t, "-n", app.Namespace)
	b := s.open(t)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>evil</title><iframe src="%s/"></iframe><main>evil</main>
			<form method="post" action="%s/before" target="target"><input name="manifest" value="x"></form><iframe name="target"></iframe>`, s.origin, s.origin)
	}))
	defer evil.Close()
	const refused = "frame-ancestors 'none'"
	b.failures.accept(refused) // of both frames, whenever the browser says so
	for _, origin := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)} {
		b.do(chromedp.Navigate(origin), chromedp.WaitReady("form"))
		b.do(chromedp.Evaluate[chromedp.Void](`window.outcome = []; for (const [path, options] of [["/", {}], ["/", { credentials: "include" }], ["/events?since=0", { credentials: "include" }],
			["/before", { method: "POST", credentials: "include", body: new URLSearchParams({ manifest: "x" }) }]])
			fetch("` + s.origin + `" + path, options).then(async (answer) => outcome.push(await answer.text()), () => outcome.push("blocked"));
			document.querySelector("form").submit();`))
		b.shows(`window.outcome.length === 4`)
		if outcomes := eval[[]string](b, `window.outcome`); strings.Join(outcomes, " ") != "blocked blocked blocked blocked" {
			t.Errorf("from %s: %q", origin, outcomes)
		}
		// A browser keeps answers without CORS from such a page anyway: internal/ui tests that each is a refusal.
		kit.EventuallyWithin(t, patience, func() string {
			if said := b.failures.all(); !slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, refused) }) {
				return fmt.Sprintf("%s: no frame was refused: %q", origin, said)
			}
			return ""
		})
		frames := eval[float64](b, `[...document.querySelectorAll("iframe")].filter((frame) => { try { return frame.contentDocument.querySelector("#main") } catch { return false } }).length`)
		if frames != 0 {
			t.Errorf("%s can read the page in a frame", origin)
		}
		b.failures.forget()
	}
}

// A name that an attacker turns to 127.0.0.1 (DNS rebinding) reaches the port, and is refused.
func TestAReboundNameIsRefused(t *testing.T) {
	needBrowser(t)
	s := serve(t, "-n", "default")
	origin, err := url.Parse(s.origin)
	kit.Must(t, err)
	b := s.openWith(t, chromedp.Flag("host-resolver-rules", "MAP rebound.example 127.0.0.1"))
	b.do(chromedp.Navigate("http://" + net.JoinHostPort("rebound.example", origin.Port()) + "/"))
	b.shows(`document.body.innerText.includes("This is not the address of the page")`)
	b.failures.forget() // it has the answer 421
}

// Values of the cluster that look like HTML are shown as they are, wherever they appear.
func TestScriptsInValuesAreText(t *testing.T) {
	needBrowser(t)
	const script = `<script>window.attacked = true</script><img src=x onerror="window.attacked=true">`
	namespace := hub.NewNamespaceOfApps(t, "script")
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME-data\n  annotations: {note: " + yamlText(script) + "}\ndata: {text: " + yamlText(script) + "}\n"
	app := hub.CreateApp(t, kit.Application(namespace, "shop", manifest))
	app.MustBe(t, application.StateRunning)
	hub.Kubectl(t, "annotate", "--overwrite", "--namespace", namespace, "configmap/shop-data", "note="+script+"2", "--field-manager", "<script>window.attacked=true</script>")
	hub.Kubectl(t, "annotate", "--namespace", namespace, "configmap/shop", "krake.dev/mode="+"observe", "--overwrite")
	kit.Eventually(t, func() string {
		if read := app.Read(t); len(read.Status.Drifts) == 0 {
			return "the status has no drift"
		}
		return ""
	})
	b := serve(t, "-n", namespace).open(t)
	object := fmt.Sprintf("/object?namespace=%s&name=shop&apiVersion=v1&kind=ConfigMap&objectNamespace=%s&object=shop-data&private=1", namespace, namespace)
	for _, path := range []string{"/", applicationPath(app), object} {
		b.visit(path)
		if eval[bool](b, `window.attacked === true || document.querySelector("img") !== null || document.scripts.length !== 1`) {
			t.Errorf("%s: a value became HTML", path)
		}
	}
	b.shows(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, script))
	b.visit("/before")
	b.do(chromedp.SetValue(`#name`, script), chromedp.SetValue(`#manifest`, manifest), chromedp.Click(`#before button`), chromedp.WaitVisible(`[role=alert], .said, pre.diff`))
	if eval[bool](b, `window.attacked === true || document.querySelector("img") !== null`) {
		t.Error("a pasted value became HTML")
	}
}

func yamlText(text string) string { return "'" + text + "'" }

// Nothing is fetched from anywhere else, and no request carries the token but the first.
func TestTheTokenLeaksNowhere(t *testing.T) {
	needBrowser(t)
	app := running(t)
	s := serve(t, "-n", app.Namespace)
	b := s.open(t)
	for _, path := range []string{applicationPath(app), objectPath(app, "v1", "Service"), "/before", "/"} {
		b.visit(path)
	}
	b.shows(`document.querySelector("#applications")`)
	token := s.link[strings.Index(s.link, "token=")+len("token="):]
	for i, request := range b.failures.requested() {
		isFirst := request.URL == s.link
		if !strings.HasPrefix(request.URL, s.origin) || strings.Contains(request.URL, token) && !isFirst {
			t.Errorf("request %d goes to %s", i, request.URL)
		}
		if referer, _ := request.Headers["Referer"].(string); strings.Contains(referer, token) {
			t.Errorf("request %d has the token in its Referer", i)
		}
	}
	if text := eval[string](b, `document.documentElement.outerHTML + document.cookie + location.href + document.referrer`); strings.Contains(text, token) {
		t.Error("the page has the token, or its cookie is readable")
	}
	b.do(chromedp.Navigate("about:blank"))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.link, http.NoBody) // the link was used
	kit.Must(t, err)
	answer, err := http.DefaultClient.Do(request)
	kit.Must(t, err)
	kit.Must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("the link works twice: %s", answer.Status)
	}
}

package ui

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
)

// refused requires that none of the requests reaches the Source, or a page.
func refused(t *testing.T, s *Server, status int, requests map[string]*http.Request) {
	t.Helper()
	for why, r := range requests {
		answered := answer(s, r)
		check.Equal(t, why+": status", status, answered.Code)
		check.Equal(t, why+": cookie", "", answered.Header().Get("Set-Cookie"))
	}
	check.Empty(t, "calls of the Source", s.source.(*fake).asked)
}

func withHeader(r *http.Request, name, value string) *http.Request {
	r.Header.Set(name, value)
	return r
}

func withHost(r *http.Request, host string) *http.Request {
	r.Host = host
	return r
}

// Any web page can make the user's browser send a request to the port, and with the cookie, if the
// browser is old.
func TestAnotherOriginIsRefused(t *testing.T) {
	s := newServer(&fake{})
	form := url.Values{"name": {"web"}, "manifest": {"kind: Service"}}
	without := func(r *http.Request, name string) *http.Request {
		r.Header.Del(name)
		return r
	}
	requests := map[string]*http.Request{
		"a POST without an origin": without(own(s, http.MethodPost, "/before", form), "Origin"),
	}
	for _, origin := range []string{
		"http://evil.example", "null", "https://" + address, "http://127.0.0.1:4712", "http://127.0.0.1", "http://localhost:4711", "http://" + address + ".evil.example",
		"http://evil.example, http://" + address, "HTTP://" + address + "/",
	} {
		requests["a POST of "+origin] = withHeader(own(s, http.MethodPost, "/before", form), "Origin", origin)
		requests["a GET of "+origin] = withHeader(own(s, http.MethodGet, "/", nil), "Origin", origin)
	}
	for _, site := range []string{"cross-site", "same-site", "other"} {
		requests["a GET, "+site] = withHeader(own(s, http.MethodGet, "/", nil), "Sec-Fetch-Site", site)
		requests["a POST, "+site] = withHeader(own(s, http.MethodPost, "/before", form), "Sec-Fetch-Site", site)
		requests["the link, "+site] = withHeader(request(http.MethodGet, s.Link(), nil), "Sec-Fetch-Site", site)
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, "get"} {
		requests["a "+method+" without an origin"] = without(own(s, method, "/", nil), "Origin")
	}
	refused(t, s, http.StatusForbidden, requests)
	check.Equal(t, "the page itself", http.StatusOK, answer(s, own(s, http.MethodPost, "/before", form)).Code)
}

// A name of an attacker that points to 127.0.0.1 makes the page a part of the attacker's origin.
func TestReboundNameIsRefused(t *testing.T) {
	s := newServer(&fake{})
	requests := map[string]*http.Request{}
	for _, host := range []string{
		"evil.example:4711", "localhost:4711", "127.0.0.1:4712", "127.0.0.1", "[::1]:4711", "127.1:4711", "2130706433:4711", "127.0.0.1:4711.", "", "evil@" + address,
	} {
		requests["host "+host] = withHost(own(s, http.MethodGet, "/", nil), host)
		requests["the link at "+host] = withHost(request(http.MethodGet, s.Link(), nil), host)
		requests["a POST to "+host] = withHost(withHeader(own(s, http.MethodPost, "/before", url.Values{}), "Origin", "http://"+host), host)
	}
	refused(t, s, http.StatusMisdirectedRequest, requests)
	check.Equal(t, "the link still works", http.StatusSeeOther, answer(s, request(http.MethodGet, s.Link(), nil)).Code)
}

// Other programs of the machine reach the port without a browser.
func TestForgedCookieIsRefused(t *testing.T) {
	s := newServer(&fake{})
	requests := map[string]*http.Request{"no cookie": request(http.MethodGet, "/", nil)}
	for why, c := range map[string][2]string{
		"a wrong value":            {s.guard.cookieName(), "AAAAAAAAAAAAAAAAAAAAAAAAAA"},
		"no value":                 {s.guard.cookieName(), ""},
		"a part of the value":      {s.guard.cookieName(), s.guard.secret[1:]},
		"the value and more":       {s.guard.cookieName(), s.guard.secret + "A"},
		"another case":             {s.guard.cookieName(), strings.ToLower(s.guard.secret)},
		"the token":                {s.guard.cookieName(), s.guard.token},
		"the name of another port": {"krake-ui-4712", s.guard.secret},
		"the name without a port":  {"krake-ui-", s.guard.secret},
	} {
		for _, path := range []string{"/", "/page.js", "/events?since=0", "/object/events", "/nowhere", "//evil.example/%2e%2e"} {
			r := request(http.MethodGet, path, nil)
			addCookie(r, c[0], c[1])
			requests[why+" for "+path] = r
		}
	}
	refused(t, s, http.StatusForbidden, requests)
	// A cookie of an older page at the same port may come first.
	r := request(http.MethodGet, "/", nil)
	addCookie(r, s.guard.cookieName(), "old")
	addCookie(r, s.guard.cookieName(), s.guard.secret)
	check.Equal(t, "two cookies", http.StatusOK, answer(s, r).Code)
}

func TestTheLinkWorksOnce(t *testing.T) {
	s := newServer(&fake{})
	refused(t, s, http.StatusForbidden, map[string]*http.Request{
		"no token": request(http.MethodGet, "/?token=", nil), "another token": request(http.MethodGet, "/?token=AAAAAAAAAAAAAAAAAAAAAAAAAA", nil),
		"the cookie's value": request(http.MethodGet, "/?token="+s.guard.secret, nil),
	})
	link := s.Link()
	var opened atomic.Int32
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if answer(s, request(http.MethodGet, link, nil)).Code == http.StatusSeeOther {
				opened.Add(1)
			}
		})
	}
	group.Wait()
	check.Equal(t, "how many of 100 uses at once succeed", 1, int(opened.Load()))
	refused(t, s, http.StatusForbidden, map[string]*http.Request{
		"the second use": request(http.MethodGet, link, nil), "the token is empty now": request(http.MethodGet, "/?token=", nil),
	})
	again := answer(s, own(s, http.MethodGet, link, nil))
	check.Equal(t, "the second use by the same browser", http.StatusSeeOther, again.Code)
}

// Browsers leave the port out of the address if it is that of HTTP.
func TestPort80NeedsNoPort(t *testing.T) {
	s := New(&fake{}, "hub", "127.0.0.1:80", func() time.Time { return noon })
	check.Equal(t, "link", "http://127.0.0.1/?token="+s.guard.token, s.Link())
	opened := answer(s, withHost(request(http.MethodGet, s.Link(), nil), "127.0.0.1"))
	check.Equal(t, "status of the link", http.StatusSeeOther, opened.Code)
	form := withHost(own(s, http.MethodPost, "/before", url.Values{}), "127.0.0.1")
	check.Equal(t, "status of a form", http.StatusOK, answer(s, withHeader(form, "Origin", "http://127.0.0.1")).Code)
}

// Browsers send the address of a page along, and keep it in their history.
func TestTheTokenIsInNoReferrer(t *testing.T) {
	s := newServer(&fake{})
	token := s.guard.token
	opened := answer(s, request(http.MethodGet, s.Link(), nil))
	check.Equal(t, "status", http.StatusSeeOther, opened.Code)
	check.Equal(t, "location", "/", opened.Header().Get("Location"))
	check.Equal(t, "policy", "same-origin", opened.Header().Get("Referrer-Policy"))
	for _, visit := range visits(refOf("web", "Deployment", "web")) {
		answered := answer(s, visit.request(s))
		for _, secret := range []string{token, s.guard.secret} {
			if strings.Contains(answered.Body.String(), secret) {
				t.Errorf("%s: the page has the token or the cookie", visit.name)
			}
		}
	}
}

// A script cannot read the cookie, and another site cannot make the browser send it.
func TestTheCookieIsForThePageOnly(t *testing.T) {
	s := newServer(&fake{})
	set := answer(s, request(http.MethodGet, s.Link(), nil)).Header().Get("Set-Cookie")
	check.Equal(t, "cookie", "krake-ui-4711="+s.guard.secret+"; Path=/; HttpOnly; SameSite=Strict", set)
}

func TestHeadersAllowNothingElse(t *testing.T) {
	want := map[string]string{
		"Content-Security-Policy":      "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
		"Referrer-Policy":              "same-origin",
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "no-store",
	}
	s := newServer(&fake{})
	requests := map[string]*http.Request{
		"the style":         own(s, http.MethodGet, "/page.css", nil),
		"the script":        own(s, http.MethodGet, "/page.js", nil),
		"a part of a file":  withHeader(own(s, http.MethodGet, "/page.js", nil), "Range", "bytes=0-9"),
		"no icon":           own(s, http.MethodGet, "/favicon.ico", nil),
		"no such page":      own(s, http.MethodGet, "/nowhere", nil),
		"no such method":    own(s, http.MethodPost, "/", url.Values{}),
		"a path to clean":   own(s, http.MethodGet, "//evil.example/../x", nil),
		"no number":         own(s, http.MethodGet, "/events?since=x", nil),
		"no object":         own(s, http.MethodGet, "/object/events", nil),
		"another host":      withHost(request(http.MethodGet, "/", nil), "evil.example"),
		"another origin":    withHeader(own(s, http.MethodGet, "/", nil), "Origin", "null"),
		"no cookie":         request(http.MethodGet, "/", nil),
		"a wrong token":     request(http.MethodGet, "/?token=x", nil),
		"the link":          request(http.MethodGet, s.Link(), nil),
		"only the headers":  own(s, http.MethodHead, "/", nil),
		"a folder of files": own(s, http.MethodGet, "/assets/", nil),
	}
	for _, visit := range visits(refOf("web", "Deployment", "web")) {
		requests[visit.name] = visit.request(s)
	}
	for _, name := range []string{"overview", "application", "object", "forecast"} {
		failing := newServer(&fake{err: io.ErrUnexpectedEOF})
		for _, visit := range visits(refOf("web", "Deployment", "web")) {
			if visit.name == name {
				requests["failing "+name] = own(s, visit.method, visit.target, visit.form)
				compareHeaders(t, "failing "+name, want, answer(failing, visit.request(failing)).Header())
			}
		}
	}
	for why, r := range requests {
		compareHeaders(t, why, want, answer(s, r).Header())
	}
}

func compareHeaders(t *testing.T, why string, want map[string]string, header http.Header) {
	t.Helper()
	got := maps.Clone(want)
	for name := range got {
		got[name] = strings.Join(header.Values(name), " | ")
	}
	check.Equal(t, why, want, got)
	check.Equal(t, why+": other origins that may read it", "", header.Get("Access-Control-Allow-Origin"))
}

// A request must not fill the memory.
func TestATooLargeBodyIsRefused(t *testing.T) {
	source := &fake{}
	s := newServer(source)
	for _, path := range []string{"/before", "/object/schema"} {
		form := refOf("web", "Deployment", "web").query()
		form.Set("manifest", strings.Repeat("a", mostBytes))
		answered := answer(s, own(s, http.MethodPost, path, form))
		if code := answered.Code; code < 400 || code > 599 || !strings.Contains(answered.Body.String(), "request body too large") {
			t.Errorf("%s: %d", path, code)
		}
	}
	check.Empty(t, "calls of the Source", source.asked)
	form := url.Values{"name": {"web"}, "manifest": {strings.Repeat("a", mostBytes-100)}}
	check.Equal(t, "a large body", http.StatusOK, answer(s, own(s, http.MethodPost, "/before", form)).Code)
}

package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// The request has the required fields and no data of the agent, also after a redirect.
func TestWhatIsSent(t *testing.T) {
	proxy := newVictim(t, "127.0.0.1:0")
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://user:"+canary+"@127.0.0.1:"+proxy.port())
	}
	var got []http.Header
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header)
		if r.URL.Path == "/web.yaml" {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: canary, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
			http.Redirect(w, r, "/there?sig=1", http.StatusFound)
			return
		}
		fmt.Fprint(w, "hello")
	})
	body, err := w.fetch(t, w.url("/web.yaml")+"#sha256=2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824")
	if err != nil || string(body) != "hello" {
		t.Fatalf("got %q, %v", body, err)
	}
	header := http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}, "User-Agent": {"krake-observer"}, "Connection": {"close"}}
	check.Equal(t, "headers", []http.Header{header, header}, got)
	if count := proxy.connections(t); count != 0 {
		t.Errorf("the proxy of the environment was reached %d times", count)
	}
}

// forms are the notations of an address of the machine itself, of the node or of the cluster,
// and texts that are no host.
func forms(port string) []string {
	hosts := []string{
		"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.0.0.01",
		"127.0.0.1.", "0", "0.0.0.0", "127.127.127.127", "localhost", "LocalHost", "localhost.",
		"[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
		"[fe80::1%25lo]", "[::1%25lo]", "[127.0.0.1]",
		"%31%32%37.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "１２７.0.0.1",
		"user:password@127.0.0.1", "example.com@127.0.0.1", "example.com%40127.0.0.1", "127.0.0.1%23@example.com", "127.0.0.1\\@example.com",
		"local.example.com", "mapped.example.com", "zero.example.com", "six.example.com", "nowhere.example.com", "both.example.com",
		"a.b.example.com", "example.com.evil.test", "evilexample.com", "127.0.0.1.nip.io", "kubernetes.default.svc", "metadata.google.internal",
	}
	texts := []string{
		"https:///web.yaml", "https://:" + port + "/web.yaml", "https:127.0.0.1:" + port + "/web.yaml", "//127.0.0.1:" + port + "/web.yaml",
		"file:///etc/passwd.yaml", "file://127.0.0.1:" + port + "/web.yaml", "gopher://127.0.0.1:" + port + "/web.yaml",
		"ftp://127.0.0.1:" + port + "/web.yaml", "dict://127.0.0.1:" + port + "/web.yaml", "jar:https://127.0.0.1:" + port + "!/web.yaml",
		"https://example.com:443@127.0.0.1:" + port + "/web.yaml", "https://example.com#@127.0.0.1:" + port + "/web.yaml",
		"https://example.com?@127.0.0.1:" + port + "/web.yaml", "https://example.com\n@127.0.0.1:" + port + "/web.yaml",
	}
	for _, host := range hosts {
		texts = append(texts, "https://"+host+":"+port+"/web.yaml", "http://"+host+":"+port+"/web.yaml")
	}
	return texts
}

// newPrey returns a world whose administrator has named every possible host. Only the check of
// addresses protects the victims, on IPv4 and IPv6.
func newPrey(t *testing.T) (w *world, victims []*victim) {
	t.Helper()
	w = newWorld(t, func(http.ResponseWriter, *http.Request) { t.Error("the host was asked") })
	four := newVictim(t, "127.0.0.1:0")
	victims = []*victim{four, newVictim(t, "[::1]:"+four.port())}
	for name, answer := range map[string]string{
		"local": "127.0.0.1", "mapped": "::ffff:127.0.0.1", "zero": "0.0.0.0", "six": "::1", "nowhere": "::", "both": "::1 127.0.0.1",
	} {
		w.names.known[name+".example.com"] = []string{answer}
	}
	for _, host := range []string{"127.0.0.1", "127.127.127.127", "0.0.0.0", "[::1]", "[::]", "localhost", "example.com", "*.example.com"} {
		w.options.Hosts = append(w.options.Hosts, host+":"+four.port())
	}
	return w, victims
}

func checkUnharmed(t *testing.T, victims []*victim) {
	t.Helper()
	for _, victim := range victims {
		if count := victim.connections(t); count != 0 {
			t.Errorf("%s was reached %d times", victim.listener.Addr(), count)
		}
	}
}

// For any URL of a user, nothing on the agent's own machine is reached.
func TestNoFormOfAnAddressReachesTheVictim(t *testing.T) {
	w, victims := newPrey(t)
	fetcher := w.fetcher(t)
	for _, text := range forms(victims[0].port()) {
		source, isURL, err := application.ParseSource(application.ToscaKey, text)
		if err == nil && !isURL {
			continue // a template, which is not fetched
		}
		if err == nil {
			_, err = fetchOne(t.Context(), fetcher, source)
		}
		if err == nil {
			t.Errorf("%s: was fetched", text)
		}
	}
	checkUnharmed(t, victims)
}

// The connection does not rely on the list of hosts either. It gets the forms directly, and
// the name server resolves them as libc does.
func TestNoFormIsConnectedTo(t *testing.T) {
	w, victims := newPrey(t)
	fetcher := w.fetcher(t)
	asked := 0
	for _, text := range forms(victims[0].port()) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, text, nil)
		if err != nil {
			continue
		}
		asked++
		if response, err := fetcher.transport.RoundTrip(request); err == nil {
			_ = response.Body.Close()
			t.Errorf("%s: was answered", text)
		}
	}
	if asked < 40 {
		t.Errorf("only %d forms were asked for", asked)
	}
	checkUnharmed(t, victims)
}

// A name may have another address at the second look-up.
func TestRebinding(t *testing.T) {
	for _, c := range []struct{ why, first, second string }{
		{"another answer after the first", "127.0.0.2", "127.0.0.1"},
		{"a second address beside the first", "127.0.0.2", "127.0.0.1 127.0.0.2"},
		{"the other family", "127.0.0.2", "::ffff:127.0.0.1"},
	} {
		t.Run(c.why, func(t *testing.T) {
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "/web.yaml", http.StatusFound)
			})
			prey := newVictim(t, "127.0.0.1:"+w.port)
			w.names.known["example.com"] = []string{c.first, c.second}
			_, err := w.fetch(t, w.url("/web.yaml"))
			checkError(t, err, "refused: ")
			checkUnharmed(t, []*victim{prey})
		})
	}
}

func TestRedirects(t *testing.T) {
	prey := newVictim(t, "127.0.0.1:0")
	for _, c := range []struct{ why, location, want string }{
		{"to http", "http://example.com/b.yaml", "refused: http:// is refused"},
		{"to a file", "file:///etc/" + canary, "refused: file:// is refused"},
		{"to another scheme", "gopher://example.com/" + canary, "refused: only https:// is fetched"},
		{"to a name that is not named", "https://evil.test/" + canary, "refused: evil.test is none of the hosts"},
		{"to another port of the host", "https://example.com:" + prey.port() + "/" + canary, "refused: example.com:" + prey.port() + " is none of the hosts"},
		{"to an address", "https://127.0.0.1:" + prey.port() + "/", "is none of the hosts"},
		{"to an address in disguise", "https://2130706433:" + prey.port() + "/", "refused: the host is an IP address in an unusual spelling"},
		{"to a named host at a private address", "https://private.example.com:" + prey.port() + "/", "refused: its address is loopback"},
		{"with credentials", "https://user:" + canary + "@example.com/", "refused: a URL with a user name"},
		{"to nowhere", "", "refused: it redirects to what is no URL"},
		{"to itself", "/a.yaml", "refused: it redirects more than 3 times"},
		{"in a chain that is too long", "/steps/3", "refused: it redirects more than 3 times"},
		{"in a chain as long as allowed", "/steps/2", ""},
		{"with a query and a fragment", "/steps/0?sig=" + canary + "#x", ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				next := map[string]string{
					"/a.yaml": c.location, "/circle/1": "/circle/2", "/circle/2": "/circle/1",
					"/steps/3": "/steps/2", "/steps/2": "/steps/1", "/steps/1": "/steps/0",
				}
				if location, ok := next[r.URL.Path]; ok {
					w.Header().Set("Location", location)
					w.WriteHeader(http.StatusFound)
					fmt.Fprint(w, canary)
					return
				}
				fmt.Fprint(w, "hello")
			})
			w.options.Hosts = append(w.options.Hosts, "private.example.com:"+prey.port())
			body, err := w.fetch(t, w.url("/a.yaml"))
			if c.want != "" {
				checkError(t, err, c.want)
			} else if err != nil || string(body) != "hello" {
				t.Errorf("got %q, %v", body, err)
			}
		})
	}
	checkUnharmed(t, []*victim{prey})
}

// Exactly the redirecting statuses are followed.
func TestStatuses(t *testing.T) {
	for status, want := range map[int]string{
		200: "", 201: "the host answers 201 Created, and not 200", 204: "204 No Content", 206: "206 Partial Content",
		300: "300 Multiple Choices", 304: "304 Not Modified", 305: "305 Use Proxy",
		301: "evil.test is none", 302: "evil.test is none", 303: "evil.test is none", 307: "evil.test is none", 308: "evil.test is none",
		401: "401 Unauthorized", 404: "404 Not Found", 429: "429 Too Many Requests", 500: "500 Internal Server Error", 503: "503 Service Unavailable", 599: "599",
	} {
		w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://evil.test/"+canary)
			w.WriteHeader(status)
			if status != http.StatusNoContent && status != http.StatusNotModified {
				fmt.Fprint(w, canary)
			}
		})
		body, err := w.fetch(t, w.url("/a.yaml"))
		if want != "" {
			checkError(t, err, want)
		} else if err != nil || string(body) != canary {
			t.Errorf("%d: got %q, %v", status, body, err)
		}
	}
}

// write sends bytes unchanged, then again repeatedly if it is set, until the connection is
// closed.
func write(text string, again string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, err = conn.Write([]byte(text))
		for err == nil && again != "" {
			_, err = conn.Write([]byte(again))
		}
	}
}

// trickle sends a byte now and then, and never the last one.
func trickle(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		now := time.NewTicker(10 * time.Millisecond)
		defer now.Stop()
		_, err = conn.Write([]byte(text))
		for err == nil {
			<-now.C
			_, err = conn.Write([]byte("a"))
		}
	}
}

const fine = "HTTP/1.1 200 OK\r\n"

func TestHostsThatMisbehave(t *testing.T) {
	kilobyte := strings.Repeat("a", 1000)
	const slow, notHTTP = "no whole answer came within 500ms", "the host does not speak HTTP/1.1 over TLS 1.2"
	for _, c := range []struct {
		why     string
		handler http.HandlerFunc
		want    string
	}{
		{"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, slow},
		{"slow headers", trickle(fine + "A: " + canary), slow},
		{"a slow body", trickle(fine + "\r\n" + canary), slow},
		{"an endless body", write(fine+"\r\n", kilobyte), "refused: it has, with what it imports, more than 100000 bytes"},
		{"endless chunks", write(fine+"Transfer-Encoding: chunked\r\n\r\n", "3e8\r\n"+kilobyte+"\r\n"), "more than 100000 bytes"},
		{"more than allowed, as announced", write(fine+"Content-Length: 100001\r\n\r\n", ""), "more than 100000 bytes"},
		{"a length that is no number", write(fine+"Content-Length: 9"+strings.Repeat("9", 30)+"\r\n\r\n", ""), notHTTP},
		{"less than announced", write(fine+"Content-Length: 50000\r\n\r\n"+canary, ""), "the answer was cut off"},
		{"endless headers", write(fine, "A: "+canary+kilobyte+"\r\n"), notHTTP},
		{"another protocol", write("SSH-2.0-"+canary+"\r\n", ""), notHTTP},
		{"a status that is none", write("HTTP/1.1 "+canary+"\r\n\r\n", ""), notHTTP},
		{"a status with words of its own", write("HTTP/1.1 403 "+canary+"\r\n\r\n", ""), "the host answers 403 Forbidden, and not 200"},
		{"nothing at all", write("", ""), "the answer was cut off"},
		{"a compressed body", write(fine+"Content-Encoding: gzip\r\n\r\n"+bomb(t), ""), "refused: the host sends it compressed"},
		{"a compressed one by another name", write(fine+"Content-Encoding: "+canary+"\r\n\r\n", ""), "refused: the host sends it compressed"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.handler)
			w.options.MaxBytes = 100_000
			w.options.Timeout = 20 * time.Second
			if c.want == slow {
				w.options.Timeout = 500 * time.Millisecond
			}
			begin := time.Now()
			_, err := w.fetch(t, w.url("/a.yaml"))
			checkError(t, err, c.want)
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// bomb is 20 MiB of zeros, compressed.
func bomb(t *testing.T) string {
	t.Helper()
	var compressed bytes.Buffer
	zipper := gzip.NewWriter(&compressed)
	_, err := zipper.Write(make([]byte, 20<<20))
	check.Must(t, err)
	check.Must(t, zipper.Close())
	return compressed.String()
}

func TestDigests(t *testing.T) {
	const hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	if _, err := w.fetch(t, w.url("/a.yaml#sha256="+hello)); err != nil {
		t.Error(err)
	}
	_, err := w.fetch(t, w.url("/a.yaml#sha256="+strings.Repeat("0", 64)))
	checkError(t, err, "/a.yaml: refused: what is there has not the digest of the URL, but sha256:"+hello)
	if !errors.Is(err, ErrRefused) {
		t.Errorf("%v is no refusal", err)
	}
}

func TestTLS(t *testing.T) {
	for _, c := range []struct {
		why    string
		change func(*world)
		want   string
	}{
		{"a certificate for another name", func(w *world) {
			w.names.known["other.test"] = []string{"127.0.0.2"}
			w.options.Hosts = []string{"other.test:" + w.port}
		}, "the certificate is for another host"},
		{"one for another address", func(w *world) {
			w.options.Hosts = []string{"127.0.0.2:" + w.port}
		}, "the certificate is for another host"},
		{"one of a foreign authority", func(w *world) { w.options.RootCAs = nil }, "of an authority that the agent does not trust"},
		{"TLS 1.1", func(w *world) { w.host.TLS.MaxVersion = tls.VersionTLS11 }, "does not speak HTTP/1.1 over TLS 1.2 or newer"},
		{"no TLS", func(w *world) {
			plain := httptest.NewServer(http.NotFoundHandler())
			t.Cleanup(plain.Close)
			w.options.AllowPrivate = append(w.options.AllowPrivate, netip.MustParsePrefix("127.0.0.1/32"))
			w.options.Hosts = []string{"plain.test:" + portOf(plain.Listener.Addr())}
		}, "does not speak HTTP/1.1 over TLS 1.2 or newer"},
		{"nobody there", func(w *world) { w.host.Close() }, "connection refused"},
		{"a name that nobody has", func(w *world) { w.names.known["example.com"] = []string{""} }, "no name server knows the host"},
		{"a name server that does not answer", func(w *world) {
			w.options.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New(canary)
			}}
		}, "the name servers do not answer"},
	} {
		t.Run(c.why, func(t *testing.T) {
			w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, canary) })
			w.host.TLS.MinVersion = tls.VersionTLS10
			c.change(w)
			_, err := w.fetch(t, "https://"+w.options.Hosts[0]+"/a.yaml")
			checkError(t, err, c.want)
			if errors.Is(err, ErrRefused) {
				t.Errorf("%v is a refusal, but may be otherwise tomorrow", err)
			}
		})
	}
}

// All addresses of a host are tried, and no others.
func TestAddressesInTurn(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	prey := newVictim(t, "127.0.0.1:"+w.port)
	w.names.known["example.com"] = []string{"127.0.0.1 127.0.0.2"}
	if body, err := w.fetch(t, w.url("/a.yaml")); err != nil || string(body) != "hello" {
		t.Errorf("got %q, %v", body, err)
	}
	checkUnharmed(t, []*victim{prey})
}

// An agent that ends does not wait for a host.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {
		cancel()
		<-over // a handler that returns answers
	})
	_, err := fetchOne(ctx, w.fetcher(t), application.Source{URL: w.url("/a.yaml")})
	close(over)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Hosts: []string{"https://example.org"}}, `"https://example.org" is no host: write HOST`},
		{Options{AllowPrivate: []netip.Prefix{{}}}, "is no range of addresses"},
		{Options{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("169.254.169.254/32")}}, "cannot be allowed: it is a link-local address"},
		{Options{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}}, "is no range of addresses"},
		{Options{Timeout: -1}, "must not be negative"},
		{Options{MaxBytes: -1}, "must not be negative"},
	} {
		_, err := New(c.options)
		checkError(t, err, c.want)
	}
}

// Without a named host, nothing is fetched, and no name is looked up.
func TestNoHosts(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) { t.Error("the host was asked") })
	w.options.Hosts = nil
	_, err := w.fetch(t, w.url("/a.yaml"))
	checkError(t, err, "is none of the hosts that this agent fetches from")
	if len(w.names.asked) > 0 {
		t.Errorf("asked for %v", w.names.asked)
	}
}

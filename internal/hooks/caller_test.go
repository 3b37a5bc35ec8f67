package hooks

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

var shutdownService = manifest.Ref{ID: manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "shutdown"}}

// callerOf returns a Caller that resolves every name to the server, and a function that
// returns the dialled names.
func callerOf(t *testing.T, serve http.HandlerFunc) (*Caller, func() string) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	var dialled atomic.Value
	caller := NewCaller(func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Store(address)
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	})
	return caller, func() string { return fmt.Sprint(dialled.Load()) }
}

// The request goes to the Service by its name, and has no other content.
func TestCall(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	var asked, body string
	caller, dialled := callerOf(t, func(_ http.ResponseWriter, r *http.Request) {
		read, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked, body = r.Method+" "+r.Host+r.URL.String()+" "+r.Header.Get("Authorization")+r.Header.Get("Cookie"), string(read)
	})
	kit.Must(t, caller.Call(t.Context(), shutdownService, 8080))
	check.Equal(t, "asked", "PUT shutdown.demo.svc:8080/shutdown ", asked)
	check.Equal(t, "body and dialled", []string{"", "shutdown.demo.svc:8080"}, []string{body, dialled()})
}

// Only a 2xx is success, no redirect is followed, and no error contains the Service's answer.
func TestCallAnswers(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	raw := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, buffer, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() {
				if err := conn.Close(); err != nil {
					t.Log(err)
				}
			}()
			if _, err := buffer.WriteString(text); err != nil || buffer.Flush() != nil {
				t.Log("it has gone")
			}
		}
	}
	for _, test := range []struct {
		why   string
		serve http.HandlerFunc
		want  string
	}{
		{"done", func(http.ResponseWriter, *http.Request) {}, ""},
		{"done, without words", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, ""},
		{"gone in the middle of it", raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"), ""},
		{"it fails", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, marker, http.StatusInternalServerError) }, "the Service answers 500"},
		{"elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/"+marker, http.StatusTemporaryRedirect)
		}, "the Service answers 307"},
		{"a code of its own words", raw("HTTP/1.1 599 " + marker + "\r\n\r\n"), "the Service answers 599"},
		{"no HTTP", raw(marker + "\r\n"), "the answer is no HTTP, or it breaks off"},
		{"a header without an end", raw("HTTP/1.1 200 OK\r\nX-Large: " + strings.Repeat(marker, 1<<10)), "the answer is no HTTP, or it breaks off"},
	} {
		caller, _ := callerOf(t, test.serve)
		want := test.want
		if want != "" {
			want = "PUT http://shutdown.demo.svc:80/shutdown: " + want
		}
		check.Equal(t, test.why, want, check.Message(caller.Call(t.Context(), shutdownService, 80)))
	}
	check.Equal(t, "redirects that were followed", 0, elsewhere.Load())
}

// A Service that hangs has a time limit, and a cancelled call ends at once.
func TestCallThatHangs(t *testing.T) {
	stop := make(chan struct{})
	caller, _ := callerOf(t, func(http.ResponseWriter, *http.Request) { <-stop })
	t.Cleanup(func() { close(stop) }) // before the server waits for its end
	begin := time.Now()
	err := caller.Call(t.Context(), shutdownService, 80)
	if took := time.Since(begin); err == nil || !strings.HasSuffix(err.Error(), "no answer within 5s") || took < callTime {
		t.Errorf("after %s: %v", took, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Fails(t, "a cancelled call", caller.Call(ctx, shutdownService, 80), "context canceled")
}

// Only Services are called, and no name leads to another place of the URL.
func TestCallOfNothing(t *testing.T) {
	caller, dialled := callerOf(t, func(http.ResponseWriter, *http.Request) {})
	for _, test := range []struct {
		why    string
		change func(*manifest.Ref)
		port   int32
	}{
		{"another kind", func(s *manifest.Ref) { s.Kind = "Pod" }, 80},
		{"no namespace", func(s *manifest.Ref) { s.Namespace = "" }, 80},
		{"a name that leads elsewhere", func(s *manifest.Ref) { s.Name = "a@b" }, 80},
		{"a namespace with dots", func(s *manifest.Ref) { s.Namespace = "example.org" }, 80},
		{"a port below", func(*manifest.Ref) {}, -1},
		{"a port above", func(*manifest.Ref) {}, 65536},
	} {
		service := shutdownService
		test.change(&service)
		if err := caller.Call(t.Context(), service, test.port); err == nil {
			t.Errorf("%s: asked", test.why)
		}
	}
	check.Equal(t, "dialled", "<nil>", dialled())
}

// No Service is on the agent's own host or link, whatever its name resolves to.
func TestOwnAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"10.96.0.10:80": true, "192.168.1.1:80": true, "[fd00::1]:80": true, "203.0.113.1:80": true,
		"127.0.0.1:80": false, "127.1.2.3:80": false, "[::1]:80": false, "[::ffff:127.0.0.1]:80": false, "0.0.0.0:80": false, "[::]:80": false,
		"169.254.169.254:80": false, "[fe80::1]:80": false, "[::ffff:169.254.169.254]:80": false, "224.0.0.1:80": false, "x": false,
	} {
		if err := refuseOwn("tcp", address, nil); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	caller := NewCaller(nil)
	check.Fails(t, "a call of the own host", caller.put(t.Context(), server.URL), "no Service has such an address")
}

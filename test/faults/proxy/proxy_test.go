package proxy

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/krake-observer/krake-observer/test/kit"
)

// backend is an API server that answers every request, and records it.
type backend struct {
	*httptest.Server

	mu    sync.Mutex
	asked []string
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.asked = append(b.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Accept"))
	b.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		fmt.Fprintf(w, `{"kind": "Answer"}`)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/endless") {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	for i := range 3 {
		fmt.Fprintf(w, `{"type": "MODIFIED", "object": {"metadata": {"namespace": "demo", "name": "web-%d"}}}`+"\n", i+1)
	}
}

func (b *backend) log() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.asked...)
}

// begin returns a proxy in front of a backend, and the client of a kubeconfig through
// the proxy.
func begin(t *testing.T) (*Proxy, *backend, *http.Client, string) {
	t.Helper()
	b := &backend{}
	b.Server = httptest.NewTLSServer(b)
	t.Cleanup(b.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw})
	p, err := Start(&rest.Config{Host: b.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}})
	kit.Must(t, err)
	t.Cleanup(p.Close)
	direct, through := filepath.Join(t.TempDir(), "direct"), filepath.Join(t.TempDir(), "through")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: b.URL, CertificateAuthorityData: authority}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "secret"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	kit.Must(t, clientcmd.WriteToFile(*config, direct))
	kit.Must(t, p.WriteKubeconfig(direct, through))
	restConfig, err := clientcmd.BuildConfigFromFlags("", through)
	kit.Must(t, err)
	client, err := rest.HTTPClientFor(restConfig)
	kit.Must(t, err)
	return p, b, client, restConfig.Host
}

// ask returns the whole answer to a request.
func ask(t *testing.T, client *http.Client, method, url string) (answer, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	kit.Must(t, err)
	request.Header.Set("Accept", "application/vnd.kubernetes.protobuf,application/json;as=Table,application/json")
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, body}, err
}

func TestCallOf(t *testing.T) {
	cases := []struct {
		why, method, uri, want string
		numbered, write        bool
	}{
		{"an object of the core group", "GET", "/api/v1/namespaces/demo/services/web", "get services demo/web", true, false},
		{"an object of another group", "PATCH", "/apis/apps/v1/namespaces/demo/deployments/web", "patch deployments demo/web", true, true},
		{"a subresource", "PUT", "/apis/apps/v1/namespaces/demo/deployments/web/status", "update deployments/status demo/web", true, true},
		{"a new object has its name in the body", "POST", "/api/v1/namespaces/demo/services?fieldManager=x", "create services demo/", true, true},
		{"an object that is in no namespace", "DELETE", "/apis/example.org/v1/stages/one", "delete stages /one", true, true},
		{"a namespace itself", "GET", "/api/v1/namespaces/demo", "get namespaces /demo", true, false},
		{"the status of a namespace", "PUT", "/api/v1/namespaces/demo/status", "update namespaces/status /demo", true, true},
		{"a list is not numbered", "GET", "/api/v1/configmaps?limit=500", "list configmaps /", false, false},
		{"a watch neither", "GET", "/api/v1/configmaps?watch=true", "watch configmaps /", false, false},
		{"nor an Event", "POST", "/apis/events.k8s.io/v1/namespaces/demo/events", "create events demo/", false, true},
		{"nor what is no resource", "GET", "/apis/apps/v1", "get /apis/apps/v1 /", false, false},
		{"nor the list of groups", "GET", "/api", "get /api /", false, false},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			call := callOf(httptest.NewRequestWithContext(t.Context(), c.method, c.uri, http.NoBody), time.Time{})
			if got := call.String(); got != "#0 "+c.want+" -> 0" {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if call.numbered() != c.numbered || call.IsWrite() != c.write {
				t.Errorf("numbered %t, a write %t, want %t and %t", call.numbered(), call.IsWrite(), c.numbered, c.write)
			}
		})
	}
}

// A request without a fault arrives as it was sent, except for the formats.
func TestHandOn(t *testing.T) {
	p, b, client, host := begin(t)
	for _, path := range []string{"/api/v1/namespaces/demo/services/web", "/apis/coordination.k8s.io/v1/namespaces/demo/leases/web"} {
		got, err := ask(t, client, http.MethodGet, host+path)
		if err != nil || got.code != http.StatusOK || string(got.body) != `{"kind": "Answer"}` {
			t.Errorf("%s: %d, %q, %v", path, got.code, got.body, err)
		}
	}
	want := []string{
		"GET /api/v1/namespaces/demo/services/web Bearer secret application/json;as=Table,application/json",
		"GET /apis/coordination.k8s.io/v1/namespaces/demo/leases/web Bearer secret application/json;as=Table,application/json",
	}
	if diff := cmp.Diff(want, b.log()); diff != "" {
		t.Errorf("what the API server was asked (-want +got):\n%s", diff)
	}
	if got := fmt.Sprint(p.Since(0)); got != "[#1 get services demo/web -> 200]" {
		t.Errorf("the calls are %s: those about Leases are left out", got)
	}
}

// Requests go to two API servers in turns, and both get the same ones.
func TestShare(t *testing.T) {
	p, first, client, address := begin(t)
	other := &backend{}
	other.Server = httptest.NewTLSServer(other) // with the same certificate
	t.Cleanup(other.Close)
	kit.Must(t, p.Share(other.URL))
	for range 4 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/api/v1/pods", http.NoBody)
		kit.Must(t, err)
		response, err := client.Do(request)
		kit.Must(t, err)
		kit.Must(t, response.Body.Close())
	}
	if len(first.log()) != 2 || len(other.log()) != 2 {
		t.Errorf("the two API servers got %d and %d of 4 requests", len(first.log()), len(other.log()))
	}
	if p.Share("://") == nil {
		t.Error("an address that is none is accepted")
	}
}

func TestFaults(t *testing.T) {
	const path = "/api/v1/namespaces/demo/services/web"
	cases := []struct {
		why   string
		fault Fault
		sent  bool
		code  int // 0: the connection ends
		retry string
	}{
		{"nobody hears of a call that is cut before", Fault{}, false, 0, ""},
		{"a call that is cut after was carried out", Fault{Sent: true}, true, 0, ""},
		{"a refused call is not sent on", Fault{Answer: 403}, false, 403, ""},
		{"a call that timed out may have been carried out", Fault{Sent: true, Answer: 504}, true, 504, ""},
		{"who is one too many is told how long to wait", Fault{Answer: 429}, false, 429, "1"},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			p, b, client, host := begin(t)
			done := false
			c.fault.Do = func() { done = true }
			p.Intercept(func(call Call) *Fault {
				if call.Number == 2 {
					return &c.fault
				}
				return nil
			})
			for number := range 3 {
				got, err := ask(t, client, http.MethodDelete, host+path)
				if number == 1 {
					checkFault(t, got, err, c.code, c.retry)
				} else if err != nil || got.code != http.StatusOK {
					t.Errorf("call %d: %d, %v", number+1, got.code, err)
				}
			}
			want := 2
			if c.sent {
				want = 3
			}
			if got := len(b.log()); got != want || !done {
				t.Errorf("%d calls were sent on, want %d; the fault was carried out: %t", got, want, done)
			}
			if call := p.Since(1)[0]; !call.Faulty || call.Accepted() != c.sent {
				t.Errorf("the call is remembered as %s", call)
			}
		})
	}
}

// A muted call is carried out without an answer: the client gives up. A delayed call is
// answered late.
func TestMuteAndDelay(t *testing.T) {
	const path = "/api/v1/namespaces/demo/services/web"
	p, b, client, host := begin(t)
	client.Timeout = 200 * time.Millisecond
	p.Intercept(func(call Call) *Fault {
		if call.Number == 1 {
			return &Fault{Sent: true, Mute: true}
		}
		return &Fault{Answer: http.StatusConflict, Delay: 50 * time.Millisecond}
	})
	if got, err := ask(t, client, http.MethodGet, host+path); err == nil {
		t.Errorf("a muted call is answered: %d", got.code)
	}
	client.Timeout = 0
	begin := time.Now()
	if got, err := ask(t, client, http.MethodGet, host+path); err != nil || got.code != http.StatusConflict || time.Since(begin) < 50*time.Millisecond {
		t.Errorf("%d, %v, after %s", got.code, err, time.Since(begin))
	}
	if got := len(b.log()); got != 1 {
		t.Errorf("%d calls were sent on, want 1", got)
	}
}

// Before runs before the API server receives the call.
func TestBefore(t *testing.T) {
	p, b, client, host := begin(t)
	heard := -1
	p.Intercept(func(Call) *Fault { return &Fault{Before: func() { heard = len(b.log()) }, Answer: http.StatusConflict} })
	got, err := ask(t, client, http.MethodGet, host+"/api/v1/namespaces/demo/services/web")
	if err != nil || got.code != http.StatusOK || heard != 0 || len(b.log()) != 1 {
		t.Errorf("%d, %v; heard of before: %d", got.code, err, heard)
	}
}

func TestSubject(t *testing.T) {
	for _, c := range []struct {
		call Call
		want string
	}{
		{Call{Verb: "create", Body: []byte(`{"metadata": {"name": "web"}}`)}, "web"},
		{Call{Verb: "create", Body: []byte(`{`)}, ""},
		{Call{Verb: "patch", Name: "web", Body: []byte(`{"metadata": {"name": "other"}}`)}, "web"},
	} {
		if got := c.call.Subject(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.call, got, c.want)
		}
	}
}

func checkFault(t *testing.T, got answer, err error, code int, retry string) {
	t.Helper()
	if code == 0 {
		if err == nil {
			t.Error("the client got an answer")
		}
		return
	}
	kit.Must(t, err)
	var status struct{ Code int }
	if err := json.Unmarshal(got.body, &status); err != nil || status.Code != code || got.code != code {
		t.Errorf("the answer is %d: %s", got.code, got.body)
	}
	if after := got.header.Get("Retry-After"); after != retry {
		t.Errorf("to be tried again after %q, want %q", after, retry)
	}
}

// A client that opens a new watch whenever one ends does not keep the proxy from
// closing.
func TestClose(t *testing.T) {
	p, _, client, host := begin(t)
	var watchers sync.WaitGroup
	closed := make(chan struct{})
	for range 20 {
		watchers.Go(func() {
			for {
				select {
				case <-closed:
					return
				default:
					_, _ = ask(t, client, http.MethodGet, host+"/api/v1/endless?watch=true")
					client.CloseIdleConnections()
				}
			}
		})
	}
	for p.Watches() == 0 {
		runtime.Gosched()
	}
	go func() {
		p.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Error("it waits for somebody's watch")
	}
	watchers.Wait()
}

func TestVerdicts(t *testing.T) {
	cases := []struct {
		why     string
		verdict Verdict
		want    string
	}{
		{"all events arrive", Pass, "MODIFIED web-1, MODIFIED web-2, MODIFIED web-3"},
		{"one is lost, and the watch goes on", Drop, "MODIFIED web-1, MODIFIED web-3"},
		{"one comes twice", Twice, "MODIFIED web-1, MODIFIED web-2, MODIFIED web-2, MODIFIED web-3"},
		{"the watch expires", Expire, "MODIFIED web-1, ERROR "},
		{"the watch ends", End, "MODIFIED web-1"},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			p, _, client, host := begin(t)
			p.Filter(func(event Event) Verdict {
				if event.Name == "web-2" {
					return c.verdict
				}
				return Pass
			})
			answer, err := ask(t, client, http.MethodGet, host+"/api/v1/services?watch=true")
			kit.Must(t, err)
			if got := eventsOf(t, answer.body); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if p.Watches() != 1 || p.Numbers() != 0 {
				t.Errorf("%d watches, %d numbers", p.Watches(), p.Numbers())
			}
		})
	}
}

func eventsOf(t *testing.T, body []byte) string {
	t.Helper()
	var events []string
	for decoder := json.NewDecoder(bytes.NewReader(body)); decoder.More(); {
		var event struct {
			Type   string
			Object struct{ Metadata struct{ Name string } }
		}
		kit.Must(t, decoder.Decode(&event))
		events = append(events, event.Type+" "+event.Object.Metadata.Name)
	}
	return strings.Join(events, ", ")
}

package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Proxy stands between one client and an API server. Its methods are safe for
// concurrent use.
type Proxy struct {
	server *httptest.Server
	stop   context.CancelFunc
	client *http.Client

	target *url.URL

	mu        sync.Mutex
	calls     []Call
	numbers   int
	underWay  int
	last      time.Time // when the last numbered call began or ended
	intercept func(Call) *Fault
	filter    func(Event) Verdict
}

// Start starts a proxy in front of the API server of the configuration. It uses only
// the address and the certificate authority of the configuration.
func Start(config *rest.Config) (*Proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	bare := rest.AnonymousClientConfig(config)
	security, err := rest.TLSConfigFor(bare)
	if err != nil {
		return nil, fmt.Errorf("trust the API server: %w", err)
	}
	p := &Proxy{target: target, last: time.Now(), client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: security, ForceAttemptHTTP2: true, DisableCompression: true,
	}}}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	life, stop := context.WithCancel(context.Background()) //nolint:forbidigo // until Close
	p.stop = stop
	p.server.Config.BaseContext = func(net.Listener) context.Context { return life }
	p.server.Config.ConnContext = func(ctx context.Context, connection net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, connection)
	}
	p.server.StartTLS()
	return p, nil
}

// Close ends the connections and the proxy. It cancels the context of new watches,
// because the server waits for every request that it has begun.
func (p *Proxy) Close() {
	p.stop()
	p.server.CloseClientConnections()
	p.server.Close()
	p.client.CloseIdleConnections()
}

// WriteKubeconfig writes a copy of a kubeconfig file whose connection goes
// through the proxy.
func (p *Proxy) WriteKubeconfig(from, to string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = p.server.URL, certificate
	}
	if err := clientcmd.WriteToFile(*config, to); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// Intercept passes every call to f before the proxy sends it; f must not block, and
// returns nil for no fault. It restarts the numbers at 1.
func (p *Proxy) Intercept(f func(Call) *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.intercept, p.numbers = f, 0
}

// Filter passes every event of every watch to f, which returns its verdict and must not
// block.
func (p *Proxy) Filter(f func(Event) Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filter = f
}

// Mark returns the number of calls so far, as a position for [Proxy.Since].
func (p *Proxy) Mark() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.calls)
}

// Since returns the calls since the mark, in the order in which they arrived.
func (p *Proxy) Since(mark int) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls[mark:])
}

// Numbers returns how many calls were numbered since the last Intercept.
func (p *Proxy) Numbers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.numbers
}

// Quiet returns the time since the last numbered call; 0 if one is under way.
func (p *Proxy) Quiet() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.underWay > 0 {
		return 0
	}
	return time.Since(p.last)
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := callOf(r, time.Now())
	if call.Resource == "leases" {
		p.handOn(w, r, nil)
		return
	}
	if call.Verb == "watch" {
		p.serveWatch(w, r, call)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	call.Body = body
	index, fault := p.arrived(&call)
	defer p.left(call)
	if fault != nil && fault.Before != nil {
		fault.Before()
		fault = nil
	}
	if fault != nil && !fault.Sent {
		fault.reply(w, r)
		return
	}
	answer, err := p.carryOut(r, body)
	if err != nil {
		panic(http.ErrAbortHandler) // no API server answers: the client sees the same
	}
	p.answered(index, answer.code)
	if fault != nil {
		fault.reply(w, r)
		return
	}
	copyHeader(w, answer.header)
	w.WriteHeader(answer.code)
	_, _ = w.Write(answer.body) // a client that has gone needs no answer
}

// serveWatch forwards a watch, which ends with the client.
func (p *Proxy) serveWatch(w http.ResponseWriter, r *http.Request, call Call) {
	_, fault := p.arrived(&call)
	if fault != nil {
		fault.reply(w, r)
		return
	}
	p.handOn(w, r, func(response *http.Response) { p.stream(w, call, response.Body) })
}

// handOn forwards a request, and returns the answer unchanged. Only a started watch
// uses stream.
func (p *Proxy) handOn(w http.ResponseWriter, r *http.Request, stream func(*http.Response)) {
	response, err := p.send(r.Context(), r, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer response.Body.Close()
	copyHeader(w, response.Header)
	w.WriteHeader(response.StatusCode)
	if stream != nil && response.StatusCode == http.StatusOK && strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		stream(response)
		return
	}
	_, _ = io.Copy(w, response.Body) // the stream has ended, and no side needs an error
}

// answer is a complete answer of the API server.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// carryOut sends a call and reads the whole answer, even if the client goes.
func (p *Proxy) carryOut(r *http.Request, body []byte) (answer, error) {
	response, err := p.send(context.WithoutCancel(r.Context()), r, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, content}, err
}

func (p *Proxy) send(ctx context.Context, r *http.Request, body io.Reader) (*http.Response, error) {
	outgoing := r.Clone(ctx)
	outgoing.RequestURI, outgoing.Host = "", ""
	outgoing.URL.Scheme, outgoing.URL.Host = p.target.Scheme, p.target.Host
	outgoing.Body = io.NopCloser(body)
	outgoing.Header.Del("Accept-Encoding")
	outgoing.Header.Set("Accept", asJSON(r.Header.Get("Accept")))
	return p.client.Do(outgoing) //nolint:gosec // the address is that of the API server
}

// asJSON reduces the formats that a client accepts to JSON.
func asJSON(accept string) string {
	var formats []string
	for format := range strings.SplitSeq(accept, ",") {
		if strings.HasPrefix(strings.TrimSpace(format), "application/json") {
			formats = append(formats, format)
		}
	}
	if len(formats) == 0 {
		return "application/json"
	}
	return strings.Join(formats, ",")
}

func copyHeader(w http.ResponseWriter, header http.Header) {
	maps.Copy(w.Header(), header)
	w.Header().Del("Content-Length") // the filter may remove events
}

// arrived numbers a call, and asks for its fault.
func (p *Proxy) arrived(call *Call) (index int, fault *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if call.numbered() {
		p.numbers++
		p.underWay++
		p.last = call.At
		call.Number = p.numbers
	}
	if p.intercept != nil {
		fault = p.intercept(*call)
	}
	call.Faulty = fault != nil
	p.calls = append(p.calls, *call)
	return len(p.calls) - 1, fault
}

func (p *Proxy) answered(index, code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[index].Code = code
}

func (p *Proxy) left(call Call) {
	if call.Number == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay--
	p.last = time.Now()
}

// connectionKey is the context key for the connection of a request.
type connectionKey struct{}

// cut closes the connection of the request.
func cut(r *http.Request) {
	if connection, ok := r.Context().Value(connectionKey{}).(net.Conn); ok {
		connection.Close()
	}
}

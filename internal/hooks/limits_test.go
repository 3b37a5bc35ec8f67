package hooks

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Several addresses of one sender count as one. Addresses of unknown senders all count as one.
func TestSenders(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:80":             "10.0.0.1/32",
		"[::ffff:10.0.0.1]:80":    "10.0.0.1/32",
		"[2001:db8::1]:80":        "2001:db8::/64",
		"[2001:db8::2]:81":        "2001:db8::/64",
		"[fe80::1%eth0]:80":       "fe80::/64",
		"":                        "invalid Prefix",
		"example.org:80":          "invalid Prefix",
		"/var/run/something.sock": "invalid Prefix",
	} {
		check.Equal(t, address, want, senderOf(address).String())
	}
}

// Each sender has a budget, all senders share another one, and the memory for them is bounded.
func TestLimits(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	l := newLimits(clock.Now)
	sender := func(i int) netip.Prefix {
		return senderOf(fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&0xff, i&0xff))
	}
	allowed := func(sender netip.Prefix, times int) (allowed int) {
		for range times {
			if l.allow(sender) {
				allowed++
			}
		}
		return allowed
	}
	check.Equal(t, "one sender", sourceBurst, allowed(sender(1), 1000))
	check.Equal(t, "another one", 10, allowed(sender(2), 10))
	clock.Step(time.Second)
	check.Equal(t, "the first a second later", sourceRate, allowed(sender(1), 1000))
	clock.Step(time.Hour)
	all := 0
	for i := range 1000 {
		all += allowed(sender(i), 1)
	}
	check.Equal(t, "all of them", allBurst, all)
	for i := range 3 * maxSources {
		l.allow(sender(i))
	}
	if got := len(l.sources); got > maxSources {
		t.Errorf("%d are remembered", got)
	}
	clock.Step(time.Hour)
	check.Equal(t, "a new one is allowed", true, l.allow(sender(1<<20)))
	if got := len(l.sources); got > 2 {
		t.Errorf("%d are remembered that have said nothing for long", got)
	}
}

// A client that sends too many requests gets the time of its next try, and no other client is
// affected.
func TestTooManyRequests(t *testing.T) {
	w, pod := newWorldWithPod(t)
	for range sourceBurst {
		w.code(request{url: pod.url, body: `{}`, from: "127.0.0.2"})
	}
	got, err := w.send(request{url: pod.url, body: pod.body(), files: pod.files, from: "127.0.0.2"})
	kit.Must(t, err)
	if got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" {
		t.Errorf("got %d, %v", got.code, got.header)
	}
	w.checkCode("somebody else", request{url: pod.url, body: pod.body(), files: pod.files, from: "127.0.0.3"}, http.StatusOK)
	w.clock.Step(time.Second)
	w.checkCode("a second later", request{url: pod.url, body: pod.body(), files: pod.files, from: "127.0.0.2"}, http.StatusOK)
}

// The number of requests in work is limited.
func TestBusy(t *testing.T) {
	w, pod := newWorldWithPod(t)
	if !w.server.working.TryAcquire(atOnce) {
		t.Fatal("somebody works")
	}
	got, err := w.send(pod.request())
	if err != nil || got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" {
		t.Errorf("got %d, %v, %v", got.code, got.header, err)
	}
	w.server.working.Release(atOnce)
	w.checkCode("afterwards", pod.request(), http.StatusOK)
}

// A client that is silent or slow takes no place from others, and is disconnected.
func TestSlowSenders(t *testing.T) {
	w, pod := newWorldWithPod(t)
	slow := map[string]*slowSender{
		"who does not even shake hands": w.slow(false, ""),
		"who sends no header":           w.slow(true, ""),
		"who sends a part of a header":  w.slow(true, "PUT / HTTP/1.1\r\nHost: x\r\nX-Slow: "),
		"who sends a part of a body": w.slow(true, "PUT "+application.HookPath(web, "complete")+
			" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n{"),
	}
	for range maxConnections + 10 {
		w.slow(false, "")
	}
	w.checkCode("somebody else", pod.request(), http.StatusOK)
	for who, s := range slow {
		if err := s.ended(time.Minute); err != nil {
			t.Errorf("%s is kept: %v", who, err)
		}
	}
	again := pod.request()
	again.from = "127.0.0.9"
	w.checkCode("from the same address, afterwards", again, http.StatusOK)
}

// A client that is still sending a refused body stays connected, and reads the reason.
func TestALateBodyIsRefusedWithAnAnswer(t *testing.T) {
	w, _ := newWorldWithPod(t)
	s := w.slow(true, "PUT "+application.HookPath(web, "complete")+
		" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 6000\r\n\r\n")
	for range 3 {
		<-time.After(400 * time.Millisecond) // a server waits half a second before it closes a connection
		_, err := s.Write(make([]byte, 2000))
		kit.Must(t, err)
	}
	answer, err := bufio.NewReader(s).ReadString('\n')
	kit.Must(t, err)
	check.Equal(t, "answer", "HTTP/1.1 413 Request Entity Too Large\r\n", answer)
}

// slowSender has sent something, and then stays silent.
type slowSender struct{ net.Conn }

func (w *world) slow(handshake bool, text string) *slowSender {
	w.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	dialed, err := dialer.DialContext(w.Context(), "tcp", w.address)
	kit.Must(w, err)
	w.Cleanup(func() {
		if err := dialed.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			w.Error(err)
		}
	})
	if !handshake {
		return &slowSender{dialed}
	}
	transport, _ := w.client(nil, "").Transport.(*http.Transport)
	config := transport.TLSClientConfig.Clone()
	config.ServerName = "127.0.0.1"
	conn := tls.Client(dialed, config)
	kit.Must(w, conn.HandshakeContext(w.Context()))
	_, err = conn.Write([]byte(text))
	kit.Must(w, err)
	return &slowSender{conn}
}

// ended waits for the end of the connection.
func (s *slowSender) ended(within time.Duration) error {
	if err := s.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	scanner := bufio.NewScanner(s)
	for scanner.Scan() {
		continue // the server may send the reason
	}
	if timeout, ok := errors.AsType[net.Error](scanner.Err()); ok && timeout.Timeout() {
		return timeout
	}
	return nil
}

// A header that is too large is not read to its end, and HTTP/2 is refused.
func TestProtocol(t *testing.T) {
	w, pod := newWorldWithPod(t)
	large := pod.request()
	large.header = map[string]string{"X-Large": strings.Repeat("x", 16<<10)}
	w.checkCode("a large header", large, http.StatusRequestHeaderFieldsTooLarge)
	client := w.client(pod.files, "")
	transport, _ := client.Transport.(*http.Transport)
	transport.ForceAttemptHTTP2 = true
	sent, err := http.NewRequestWithContext(t.Context(), http.MethodPut, pod.url, strings.NewReader(pod.body()))
	kit.Must(t, err)
	sent.Header.Set("Content-Type", "application/json")
	response, err := client.Do(sent)
	kit.Must(t, err)
	check.Must(t, response.Body.Close())
	got := map[string]bool{"HTTP/1.1": response.Proto == "HTTP/1.1", "TLS 1.3": response.TLS.Version == tls.VersionTLS13, "closes": response.Close}
	check.Equal(t, "the answer", map[string]bool{"HTTP/1.1": true, "TLS 1.3": true, "closes": true}, got)
	transport.TLSClientConfig.MinVersion, transport.TLSClientConfig.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if _, err := client.Do(sent); err == nil { //nolint:bodyclose // there is no answer
		t.Error("TLS 1.1 is spoken")
	}
	conn := w.slow(true, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 404 ") {
		t.Errorf("OPTIONS *: %q, %v", line, err)
	}
}

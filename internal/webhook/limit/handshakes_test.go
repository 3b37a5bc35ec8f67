package limit

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
)

// A client opens many connections at a time without completing a handshake. Clients from other
// addresses are still served.
func TestHandshakesTakeTurns(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{GetConfigForClient: NewHandshakes().Begin, MinVersion: tls.VersionTLS13}
	server.StartTLS()
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()

	// If all came from one sender, the last client would wait longer than AnswerTime.
	const idle = handshakesAtOnce * int(2*AnswerTime/handshakeTime)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range idle {
		connection, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Skipf("this system has one address of its own, so that senders cannot be told apart: %v", err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		go func() { // the answers are never read
			_ = tls.Client(mute{connection}, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context()) //nolint:gosec // the test does not verify the server
		}()
	}
	<-time.After(handshakeTime / 2) // they wait for their turns
	ctx, cancel := context.WithTimeout(t.Context(), AnswerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	check.Must(t, err)
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatalf("who comes from elsewhere is not served: %v", err)
	}
	_ = response.Body.Close()
}

// mute is a connection without reads.
type mute struct{ net.Conn }

func (mute) Read([]byte) (int, error) { select {} }

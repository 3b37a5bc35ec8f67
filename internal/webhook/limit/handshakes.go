package limit

import (
	"context"
	"crypto/tls"
	"time"
)

const (
	// handshakesAtOnce bounds the handshakes that are computed at once. Each takes milliseconds
	// of a processor before anything is known of its sender.
	handshakesAtOnce = 4
	// handshakeTime is how long a handshake keeps its place, even if its sender stalls.
	handshakeTime = 500 * time.Millisecond
)

// Handshakes has senders that connect take turns, like those that send reviews.
type Handshakes struct{ working *fairQueue }

// NewHandshakes returns the turns of one server.
func NewHandshakes() Handshakes { return Handshakes{newFairQueue(handshakesAtOnce)} }

// Serve returns how a server of reviews sets up TLS with these turns.
func (h Handshakes) Serve(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) func(*tls.Config) {
	return func(config *tls.Config) {
		config.GetCertificate, config.GetConfigForClient = certificate, h.Begin
		config.NextProtos = []string{"http/1.1"} // HTTP/2 buffers the bodies of requests before they are read
	}
}

// Begin waits for the turn of the sender, before the first computation. It is the
// GetConfigForClient of a server, and leaves the configuration unchanged.
func (h Handshakes) Begin(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	ctx, cancel := context.WithTimeout(hello.Context(), AnswerTime)
	defer cancel()
	if err := h.working.take(ctx, senderOf(hello.Conn.RemoteAddr().String())); err != nil {
		return nil, err
	}
	place, leave := context.WithTimeout(hello.Context(), handshakeTime) // that context ends with the handshake
	context.AfterFunc(place, func() {
		leave()
		h.working.give()
	})
	return nil, nil
}

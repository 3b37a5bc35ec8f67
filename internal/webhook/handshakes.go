package webhook

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

const (
	// handshakesAtOnce are worked on at once: each takes milliseconds of a processor,
	// before anything is known of who asks.
	handshakesAtOnce = 4
	// handshakeTime is for how long one holds its place: who does not go on holds up
	// nobody else for longer.
	handshakeTime = 500 * time.Millisecond
)

// handshakes has those who connect take turns as those do who send reviews: the API
// server opens a connection for each review that it sends beside others, and gives up
// after seconds.
type handshakes struct{ working *turns }

func newHandshakes() handshakes { return handshakes{newTurns(handshakesAtOnce)} }

// begin waits for the turn of who connects, at the first that there is to compute. It is
// the GetConfigForClient of a server, and leaves the configuration as it is.
func (h handshakes) begin(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	ctx, cancel := context.WithTimeout(hello.Context(), laneWait)
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

// senderOf tells senders apart by their address.
func senderOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address // of no TCP connection
	}
	return host
}

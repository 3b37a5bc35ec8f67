package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// balancer is the webhook's Service: a test cluster has no kube-proxy. It gives
// new connections to the replicas in rotation, in turn; a connection stays with
// its replica. While there is none in rotation, connections are refused.
type balancer struct {
	port int
	// accepted counts connections.
	accepted atomic.Int64

	mu       sync.Mutex
	rotation []string // the replicas' addresses
	next     int
	refusing bool
	// resetting: connections are accepted, and reset at once.
	resetting bool
	listener  net.Listener // nil while connections are refused
	// gate is closed while bytes are passed on; as long as it is open, whoever
	// has sent something waits for ever.
	gate        chan struct{}
	connections map[net.Conn]struct{}
}

// startBalancer finds a port. It is none of those that the system gives to
// whoever asks for any: one that refuses connections is not listened at, and
// must be free when it is wanted again.
func startBalancer() (*balancer, error) {
	const first, last, tries = 20000, 30000, 50
	b := &balancer{gate: make(chan struct{}), connections: map[net.Conn]struct{}{}}
	close(b.gate)
	var failure error
	for range tries {
		b.port = first + rand.IntN(last-first) //nolint:gosec // a port need not be a secret
		listener, err := net.Listen("tcp", b.address())
		if err == nil {
			return b, listener.Close()
		}
		failure = err
	}
	return nil, fmt.Errorf("find a port for the webhook: %w", failure)
}

func (b *balancer) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// add takes a replica into rotation.
func (b *balancer) add(address string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rotation = append(b.rotation, address)
	return b.settleLocked()
}

// remove takes a replica out of rotation. Its connections are its own to close.
func (b *balancer) remove(address string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rotation = slices.DeleteFunc(b.rotation, func(other string) bool { return other == address })
	return b.settleLocked()
}

// refuse refuses new connections, and ends those that there are.
func (b *balancer) refuse() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusing = true
	b.cutLocked()
	return b.settleLocked()
}

// hang accepts connections and lets everybody wait, those that are connected
// already too.
func (b *balancer) hang() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hangingLocked() {
		b.gate = make(chan struct{})
	}
	return b.settleLocked()
}

// reset resets new connections, and ends those that there are. Other than with
// refuse, who tries is counted.
func (b *balancer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resetting = true
	b.cutLocked()
}

// resume undoes refuse, reset and hang. What was sent in the meantime is passed on.
func (b *balancer) resume() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusing, b.resetting = false, false
	if b.hangingLocked() {
		close(b.gate)
	}
	return b.settleLocked()
}

func (b *balancer) hangingLocked() bool {
	select {
	case <-b.gate:
		return false
	default:
		return true
	}
}

func (b *balancer) cutLocked() {
	for connection := range b.connections {
		connection.Close()
	}
}

// settleLocked listens, or ceases to.
func (b *balancer) settleLocked() error {
	open := !b.refusing && (b.hangingLocked() || len(b.rotation) > 0)
	switch {
	case open && b.listener == nil:
		listener, err := net.Listen("tcp", b.address())
		if err != nil {
			return fmt.Errorf("listen again for the webhook: %w", err)
		}
		b.listener = listener
		go b.serve(listener)
	case !open && b.listener != nil:
		err := b.listener.Close()
		b.listener = nil
		return err
	}
	return nil
}

// serve returns when the listener is closed.
func (b *balancer) serve(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			b.accepted.Add(1)
			go b.connect(connection)
		}
	}
}

// connect joins a connection with one to a replica. If that fails the client
// sees its connection end: that is how a broken replica looks.
func (b *balancer) connect(client net.Conn) {
	if !b.track(client) {
		return
	}
	defer b.forget(client)
	b.pass()
	address := b.choose()
	if address == "" {
		return
	}
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience) //nolint:forbidigo // a connection belongs to no caller
	defer cancel()
	replica, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil || !b.track(replica) {
		return
	}
	defer b.forget(replica)
	var both sync.WaitGroup
	both.Go(func() { b.copy(replica, client) })
	both.Go(func() { b.copy(client, replica) })
	both.Wait()
}

// choose gives the replica whose turn it is, or nothing.
func (b *balancer) choose() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rotation) == 0 {
		return ""
	}
	b.next++
	return b.rotation[b.next%len(b.rotation)]
}

// copy passes on what comes from one side until it ends, and then says so.
func (b *balancer) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		b.pass()
		if n > 0 {
			if _, failure := to.Write(buffer[:n]); failure != nil {
				break
			}
		}
		if errors.Is(err, io.EOF) {
			if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				return
			}
		}
		if err != nil {
			break
		}
	}
	to.Close()
	from.Close()
}

// pass waits while the balancer hangs.
func (b *balancer) pass() {
	b.mu.Lock()
	gate := b.gate
	b.mu.Unlock()
	<-gate
}

// track remembers a connection, to end it; one that comes just when connections
// begin to be refused is ended at once.
func (b *balancer) track(connection net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusing || b.resetting {
		if tcp, ok := connection.(*net.TCPConn); ok && b.resetting {
			_ = tcp.SetLinger(0) // or else it ends as if all had been said
		}
		connection.Close()
		return false
	}
	b.connections[connection] = struct{}{}
	return true
}

func (b *balancer) forget(connection net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.connections, connection)
	connection.Close()
}

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

// balancer is the webhook's Service, because a test cluster has no kube-proxy. It
// distributes new connections to the replicas in rotation, in turn; a connection stays
// with its replica. Without a replica in rotation, it refuses connections.
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
	// gate is closed while bytes are passed on; while it is open, all traffic waits.
	gate        chan struct{}
	connections map[net.Conn]struct{}
}

// startBalancer chooses a port outside the range that the system assigns. While the
// balancer refuses connections, it does not listen, and the port must still be free
// later.
func startBalancer() (*balancer, error) {
	const first, last, tries = 20000, 30000, 50
	b := &balancer{gate: make(chan struct{}), connections: map[net.Conn]struct{}{}}
	close(b.gate)
	var failure error
	for range tries {
		b.port = first + rand.IntN(last-first)
		listener, err := net.Listen("tcp", b.address())
		if err == nil {
			return b, listener.Close()
		}
		failure = err
	}
	return nil, fmt.Errorf("find a port for the webhook: %w", failure)
}

func (b *balancer) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// add adds a replica to the rotation.
func (b *balancer) add(address string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rotation = append(b.rotation, address)
	return b.settleLocked()
}

// remove removes a replica from the rotation. The replica closes its own connections.
func (b *balancer) remove(address string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rotation = slices.DeleteFunc(b.rotation, func(other string) bool { return other == address })
	return b.settleLocked()
}

// refuse refuses new connections, and ends existing ones.
func (b *balancer) refuse() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusing = true
	b.cutLocked()
	return b.settleLocked()
}

// hang accepts connections and never answers, also on existing ones.
func (b *balancer) hang() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hangingLocked() {
		b.gate = make(chan struct{})
	}
	return b.settleLocked()
}

// reset resets new connections, and ends existing ones. Unlike refuse, it counts the
// attempts.
func (b *balancer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resetting = true
	b.cutLocked()
}

// resume ends refuse, reset and hang. Bytes sent meanwhile are passed on.
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

// settleLocked starts or stops to listen.
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

// connect joins a connection with one to a replica. If that fails, it closes the
// client's connection, as a broken replica would.
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

// choose returns the next replica in turn, or the empty string.
func (b *balancer) choose() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rotation) == 0 {
		return ""
	}
	b.next++
	return b.rotation[b.next%len(b.rotation)]
}

// copy copies bytes from one side until its end, and then closes the other side for
// writing.
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

// track records a connection, so that it can be ended. While connections are refused,
// it ends the connection at once.
func (b *balancer) track(connection net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusing || b.resetting {
		if tcp, ok := connection.(*net.TCPConn); ok && b.resetting {
			_ = tcp.SetLinger(0) // without it, the end would look regular
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

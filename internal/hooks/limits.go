package hooks

import (
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// Requests per second and the burst, of one address and of all.
	// Behind a Service, all Pods of a node may have one address.
	sourceRate, sourceBurst = 20, 60
	allRate, allBurst       = 100, 300
	// maxSources limits how many addresses have a budget of their own. The others share one.
	maxSources = 4096
	// Open connections from one address, and from all. Each is closed after one
	// request, because a Pod sends only one.
	maxConnectionsOfOne, maxConnections = 256, 1024
	// wholeNetwork is the length of an IPv6 prefix that counts as one sender.
	wholeNetwork = 64
	// maxBody limits a body, in bytes: several times the size of a token.
	maxBody = 4 << 10
	// maxUnused limits how much of an unused body is read. A client that is still writing
	// when the connection closes does not read the answer.
	maxUnused = 64 << 10
	// atOnce bounds the requests that are handled at the same time.
	atOnce = 64
	// patience limits how long hub and agent may take. A request that was proven is
	// completed even when its caller no longer waits.
	patience = 10 * time.Second
)

// limits bounds the rate of requests.
type limits struct {
	now func() time.Time

	mu      sync.Mutex
	all     *rate.Limiter
	others  *rate.Limiter
	sources map[netip.Prefix]*rate.Limiter
}

func newLimits(now func() time.Time) *limits {
	return &limits{
		now:     now,
		all:     rate.NewLimiter(allRate, allBurst),
		others:  rate.NewLimiter(sourceRate, sourceBurst),
		sources: map[netip.Prefix]*rate.Limiter{},
	}
}

// allow counts a request, and reports whether it is within the limits. A request that is
// refused to one sender does not count against all.
func (l *limits) allow(sender netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	return l.ofLocked(sender, now).AllowN(now, 1) && l.all.AllowN(now, 1)
}

func (l *limits) ofLocked(sender netip.Prefix, now time.Time) *rate.Limiter {
	if limiter, ok := l.sources[sender]; ok {
		return limiter
	}
	if len(l.sources) >= maxSources {
		maps.DeleteFunc(l.sources, func(_ netip.Prefix, limiter *rate.Limiter) bool { return limiter.TokensAt(now) >= sourceBurst })
	}
	if len(l.sources) >= maxSources {
		return l.others
	}
	limiter := rate.NewLimiter(sourceRate, sourceBurst)
	l.sources[sender] = limiter
	return limiter
}

// senderOf returns the network that counts as one sender, for an address "host:port".
// Addresses that it cannot parse count as one sender.
func senderOf(address string) netip.Prefix {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Prefix{}
	}
	host := parsed.Addr().Unmap().WithZone("")
	bits := host.BitLen()
	if host.Is6() {
		bits = wholeNetwork
	}
	prefix, _ := host.Prefix(bits) // no prefix of an address is too long here
	return prefix
}

// listener limits the open connections. It closes one beyond the limit before it reads
// anything.
type listener struct {
	net.Listener

	mu      sync.Mutex
	open    int
	senders map[netip.Prefix]int
}

func newListener(inner net.Listener) *listener {
	return &listener{Listener: inner, senders: map[netip.Prefix]int{}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		sender := senderOf(accepted.RemoteAddr().String())
		if l.opens(sender) {
			return &connection{Conn: accepted, closed: sync.OnceFunc(func() { l.closes(sender) })}, nil
		}
		if err := accepted.Close(); err != nil {
			continue // it is gone already
		}
	}
}

func (l *listener) opens(sender netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= maxConnections || l.senders[sender] >= maxConnectionsOfOne {
		return false
	}
	l.open++
	l.senders[sender]++
	return true
}

func (l *listener) closes(sender netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.senders[sender]--; l.senders[sender] == 0 {
		delete(l.senders, sender)
	}
}

// connection is one that counts until it is closed.
type connection struct {
	net.Conn

	closed func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.closed()
	return c.Conn.Close()
}

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
	// Requests from one address, and from all, a second, and at once after a rest.
	// Behind a Service, all Pods of a node may have one address.
	sourceRate, sourceBurst = 20, 60
	allRate, allBurst       = 100, 300
	// maxSources bounds what is remembered of addresses; those beyond share one budget.
	maxSources = 4096
	// Open connections from one address, and from all. Each is closed after one
	// request: a Pod has one thing to say.
	maxConnectionsOfOne, maxConnections = 256, 1024
	// wholeNetwork is what one sender may have of IPv6.
	wholeNetwork = 64
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

// allow counts a request, and tells if it is one too many. What is refused to one
// sender does not count against all.
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

// senderOf gives who counts as one sender, of an address "host:port". Where nobody
// can be told, all are one.
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

// listener bounds the connections that are open: what is one too many is closed
// before anything is read.
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

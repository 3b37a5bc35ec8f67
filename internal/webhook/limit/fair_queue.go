package limit

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"
)

// AnswerTime is how long the answer to a review may take, from its first byte on: the wait for a
// turn, the computation, and what the API server is asked. A handshake has as long for itself. It
// leaves time to answer before the API server gives up.
const AnswerTime = 9 * time.Second

// fairQueue hands out a number of places. The requests of one sender are served in their order,
// and the senders take turns: one with a thousand requests delays another by one place.
type fairQueue struct {
	mu   sync.Mutex
	free int // 0 while a request waits
	// waiting are the requests that wait, by sender; next are the senders, in their order.
	waiting map[string][]chan struct{}
	next    []string
}

func newFairQueue(places int) *fairQueue {
	return &fairQueue{free: places, waiting: map[string][]chan struct{}{}}
}

// take waits for a place, which the caller gives back. If the context ends first, it
// returns the context's error.
func (t *fairQueue) take(ctx context.Context, sender string) error {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	if len(t.waiting[sender]) == 0 {
		t.next = append(t.next, sender)
	}
	t.waiting[sender] = append(t.waiting[sender], turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !t.leave(sender, turn) {
		t.give() // the turn has come in between
	}
	return ctx.Err()
}

// leave removes a request from those that wait, and reports whether it was among them.
func (t *fairQueue) leave(sender string, turn chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.waiting[sender], turn)
	if at < 0 {
		return false
	}
	t.waiting[sender] = slices.Delete(t.waiting[sender], at, at+1)
	if len(t.waiting[sender]) == 0 {
		delete(t.waiting, sender)
		t.next = slices.DeleteFunc(t.next, func(other string) bool { return other == sender })
	}
	return true
}

// give takes a place back, or hands it to the next sender.
func (t *fairQueue) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.next) == 0 {
		t.free++
		return
	}
	sender := t.next[0]
	t.next = t.next[1:]
	turn := t.waiting[sender][0]
	if t.waiting[sender] = t.waiting[sender][1:]; len(t.waiting[sender]) == 0 {
		delete(t.waiting, sender)
	} else {
		t.next = append(t.next, sender)
	}
	close(turn)
}

// senderOf returns the host of an address, which identifies a sender.
func senderOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address // that of no TCP connection
	}
	return host
}

package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

const (
	// maxBody is the size of a review that is read at all: two ConfigMaps of 1 MiB
	// and their metadata. (With everything in them escaped they would be more: such
	// an Application cannot be changed.)
	maxBody = 7 << 20
	// usualBody is that of a usual one, and smallBody that of most others.
	usualBody = 64 << 10
	smallBody = 512 << 10
	// Of each size so many are held at once, and so many of them worked on, which
	// takes several times their size. Each has a lane of its own, so that large
	// ones do not hold up the usual ones.
	usualHeld, usualAtOnce = 64, 4
	smallHeld, smallAtOnce = 8, 2
	largeHeld, largeAtOnce = 2, 1
	// laneWait is how long a review waits for its turn, and bodyTime how long its
	// sender may take.
	laneWait = 4 * time.Second
	bodyTime = 2 * time.Second
)

// lanes bounds what is held and worked on at once. Anyone who reaches the port
// can send something that looks like a review: senders, told apart by their address,
// take turns, so that the API server is not behind all of what another has sent.
type lanes struct {
	next                http.Handler
	now                 func() time.Time
	usual, small, large lane
}

// lane is for reviews of one size. Who sends slowly takes up a place among those
// that are held, not among those that are worked on.
type lane struct{ held, working *turns }

func newLane(held, atOnce int) lane { return lane{newTurns(held), newTurns(atOnce)} }

func newLanes(next http.Handler, now func() time.Time) *lanes {
	return &lanes{
		next: next, now: now,
		usual: newLane(usualHeld, usualAtOnce), small: newLane(smallHeld, smallAtOnce), large: newLane(largeHeld, largeAtOnce),
	}
}

// ServeHTTP implements http.Handler.
func (l *lanes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	lane := l.usual
	switch {
	case r.ContentLength < 0:
		l.refuse(w, "the length of the review must be said", http.StatusLengthRequired)
		return
	case r.ContentLength > maxBody:
		l.refuse(w, "the review is too large", http.StatusRequestEntityTooLarge)
		return
	case r.ContentLength > smallBody:
		lane = l.large
	case r.ContentLength > usualBody:
		lane = l.small
	}
	sender := senderOf(r.RemoteAddr)
	ctx, cancel := context.WithTimeout(r.Context(), laneWait)
	defer cancel()
	if err := lane.held.take(ctx, sender); err != nil {
		l.refuse(w, "too many reviews at once", http.StatusServiceUnavailable)
		return
	}
	defer lane.held.give()
	body, err := l.read(w, r)
	if err != nil {
		l.refuse(w, "the review was not sent in time", http.StatusRequestTimeout)
		return
	}
	if err := lane.working.take(ctx, sender); err != nil {
		http.Error(w, "too many reviews at once", http.StatusServiceUnavailable)
		return
	}
	defer lane.working.give()
	r.Body = io.NopCloser(bytes.NewReader(body))
	l.next.ServeHTTP(w, r)
}

func (l *lanes) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	if err := connection.SetReadDeadline(l.now().Add(bodyTime)); err != nil {
		return nil, err
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, err
	}
	// The deadline is not for the answer, which takes its own time.
	return body, connection.SetReadDeadline(time.Time{})
}

// refuse answers without reading what is still to come.
func (l *lanes) refuse(w http.ResponseWriter, text string, code int) {
	w.Header().Set("Connection", "close")
	if err := http.NewResponseController(w).SetReadDeadline(l.now()); err != nil {
		return // the connection is of no use
	}
	http.Error(w, text, code)
}

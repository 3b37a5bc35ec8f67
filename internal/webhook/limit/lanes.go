package limit

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// maxBody is the largest review that is read: two ConfigMaps of 1 MiB and their
	// metadata. (With all their text escaped they would be larger: such an Application
	// cannot be changed.)
	maxBody = 7 << 20
	// usualBody bounds the usual reviews, and smallBody most others.
	usualBody = 64 << 10
	smallBody = 512 << 10
	// Of each size so many reviews are held at once, and so many of them are answered,
	// which takes several times their size.
	usualHeld, usualAtOnce = 64, 4
	smallHeld, smallAtOnce = 8, 2
	largeHeld, largeAtOnce = 2, 1
	// bodyTime is how long the sender of a review may take.
	bodyTime = 2 * time.Second
)

// lanes bounds how many reviews are held and answered at once.
type lanes struct {
	next                http.Handler
	now                 func() time.Time
	usual, small, large lane
}

// lane is for reviews of one size. A slow sender occupies a place among those that are
// held, and not among those that are answered.
type lane struct{ held, working *fairQueue }

func newLane(held, atOnce int) lane { return lane{newFairQueue(held), newFairQueue(atOnce)} }

// NewLanes returns a handler that passes reviews to the next handler in their turn, with what is left
// of [AnswerTime]. It refuses reviews that are too large, have no length, or wait too long.
func NewLanes(next http.Handler, now func() time.Time) http.Handler {
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
	ctx, cancel := context.WithTimeout(r.Context(), AnswerTime)
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
	give := sync.OnceFunc(lane.working.give)
	defer give()
	r = r.WithContext(context.WithValue(ctx, turnKey{}, give))
	r.Body = io.NopCloser(bytes.NewReader(body))
	l.next.ServeHTTP(w, r)
}

type turnKey struct{}

// GiveBack ends the turn of the review that is answered in this context. From now on, the answer only
// waits for other servers.
func GiveBack(ctx context.Context) {
	if give, ok := ctx.Value(turnKey{}).(func()); ok {
		give()
	}
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
	// The deadline does not count for the answer.
	return body, connection.SetReadDeadline(time.Time{})
}

// refuse answers without reading what remains of the review.
func (l *lanes) refuse(w http.ResponseWriter, text string, code int) {
	w.Header().Set("Connection", "close")
	if err := http.NewResponseController(w).SetReadDeadline(l.now()); err != nil {
		return // the connection is of no use
	}
	http.Error(w, text, code)
}

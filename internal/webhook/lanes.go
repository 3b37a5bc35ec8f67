package webhook

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// maxBody is the size of a review that is read at all: two ConfigMaps of 1 MiB
	// with everything in them escaped, and their metadata.
	maxBody = 7 << 20
	// smallBody is that of a usual one.
	smallBody = 512 << 10
	// smallAtOnce and largeAtOnce bound the memory that reviews take, which is
	// several times their size: large ones get a lane of their own, so that they
	// do not hold up the usual ones.
	smallAtOnce = 8
	largeAtOnce = 1
	// laneWait is how long a review waits for its turn, and bodyTime how much longer
	// its sender may take.
	laneWait = 3 * time.Second
	bodyTime = 5 * time.Second
)

// lanes bounds what is worked on at once. Anyone who reaches the port can send
// something that looks like a review.
type lanes struct {
	next         http.Handler
	now          func() time.Time
	small, large *semaphore.Weighted
}

func newLanes(next http.Handler, now func() time.Time) *lanes {
	return &lanes{next: next, now: now, small: semaphore.NewWeighted(smallAtOnce), large: semaphore.NewWeighted(largeAtOnce)}
}

// ServeHTTP implements http.Handler.
func (l *lanes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Before anything else, so that no way out of here leaves a slow sender be.
	if err := http.NewResponseController(w).SetReadDeadline(l.now().Add(laneWait + bodyTime)); err != nil {
		http.Error(w, "the connection has no deadlines", http.StatusInternalServerError)
		return
	}
	lane := l.small
	switch {
	case r.ContentLength < 0:
		http.Error(w, "the length of the review must be said", http.StatusLengthRequired)
		return
	case r.ContentLength > maxBody:
		http.Error(w, "the review is too large", http.StatusRequestEntityTooLarge)
		return
	case r.ContentLength > smallBody:
		lane = l.large
	}
	ctx, cancel := context.WithTimeout(r.Context(), laneWait)
	defer cancel()
	if err := lane.Acquire(ctx, 1); err != nil {
		http.Error(w, "too many reviews at once", http.StatusServiceUnavailable)
		return
	}
	defer lane.Release(1)
	l.next.ServeHTTP(w, r)
}

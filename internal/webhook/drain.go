package webhook

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// drainTime is how long a server that is to stop continues to answer. An API server that
// posts to a connection just when it is closed has a failed admission, so that answers
// close the connections first.
const drainTime = 2 * time.Second

// drain delays the end of a server, and closes its connections in the meantime.
type drain struct {
	next    http.Handler
	leaving atomic.Bool
}

// ServeHTTP implements http.Handler.
func (d *drain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.leaving.Load() {
		w.Header().Set("Connection", "close")
	}
	d.next.ServeHTTP(w, r)
}

// serve serves until drainTime after the context has ended.
func (d *drain) serve(ctx context.Context, start func(context.Context) error) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	detach := context.AfterFunc(ctx, func() {
		d.leaving.Store(true)
		select {
		case <-serving.Done():
		case <-time.After(drainTime):
			stop()
		}
	})
	defer detach()
	return start(serving)
}

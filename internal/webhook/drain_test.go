package webhook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
)

// A server that stops still answers, and closes its connections with the answers.
func TestDrain(t *testing.T) {
	t.Parallel()
	d := &drain{next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	closes := func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
		check.Must(t, err)
		response, err := server.Client().Do(request)
		check.Must(t, err)
		_ = response.Body.Close()
		return response.Close
	}
	ctx, stop := context.WithCancel(t.Context())
	serving, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- d.serve(ctx, func(ctx context.Context) error {
			close(serving)
			<-ctx.Done()
			return nil
		})
	}()
	<-serving
	check.Equal(t, "a connection is given up before the end", false, closes())
	told := time.Now()
	stop()
	for !closes() { // the signal arrives a moment later
		if time.Since(told) > drainTime {
			t.Fatal("a connection is kept at the end")
		}
	}
	if err := <-ended; err != nil || time.Since(told) < drainTime {
		t.Errorf("it stopped after %s: %v", time.Since(told), err)
	}
}

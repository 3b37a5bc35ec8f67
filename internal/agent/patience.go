package agent

import (
	"context"
	"io"
	"net/http"
	"time"
)

// answerPatience is how long an answer may take, to its last byte. An API server gives up
// on a request after 60 s itself: what lasts longer is lost on its way, and whoever
// waited for it would wait for ever.
const answerPatience = 65 * time.Second

// patient ends requests that nobody answers. A watch takes as long as it takes.
type patient struct {
	http.RoundTripper

	patience time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Has("watch") {
		return p.RoundTripper.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeout(request.Context(), p.patience)
	response, err := p.RoundTripper.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = ending{response.Body, cancel}
	return response, nil
}

// ending is the body of an answer that is waited for until it is closed.
type ending struct {
	io.ReadCloser

	end context.CancelFunc
}

// Close implements io.Closer.
func (e ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

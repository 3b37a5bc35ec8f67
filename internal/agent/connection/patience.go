package connection

import (
	"context"
	"io"
	"net/http"
	"time"
)

// answerPatience is how long an answer may take, to its last byte. An API server gives up
// on a request after 60 s: an answer that lasts longer is lost on its way, and would be
// waited for without end.
const answerPatience = 65 * time.Second

// patient ends requests without an answer. A watch has no limit.
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

// ending is the body of an answer, which stops the clock when it is closed.
type ending struct {
	io.ReadCloser

	end context.CancelFunc
}

// Close implements io.Closer.
func (e ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

package target

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// transport hands requests over to a handler, and has its answer read while it is
// written: a watch goes on for minutes.
type transport struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	reader, writer := io.Pipe()
	a := &answer{header: http.Header{}, body: writer, begun: make(chan int, 1)}
	// Nobody writes for ever what nobody reads any more.
	stop := context.AfterFunc(ctx, func() { writer.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer cancel()
		defer stop()
		sent := request.WithContext(ctx)
		if sent.Body == nil {
			sent.Body = http.NoBody
		}
		defer sent.Body.Close()
		t.ServeHTTP(a, sent)
		a.WriteHeader(http.StatusOK) // if it has not yet
		writer.Close()
	}()
	select {
	case code := <-a.begun:
		return &http.Response{
			Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: a.header, Body: body{reader, cancel}, ContentLength: -1, Request: request,
		}, nil
	case <-request.Context().Done():
		cancel()
		return nil, context.Cause(request.Context())
	}
}

// answer implements http.ResponseWriter.
type answer struct {
	header http.Header
	body   io.Writer
	once   sync.Once
	begun  chan int
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. The header is not changed after it.
func (a *answer) WriteHeader(code int) { a.once.Do(func() { a.begun <- code }) }

// Write implements http.ResponseWriter.
func (a *answer) Write(text []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(text)
}

// body is the body of an answer; who closes it has heard enough.
type body struct {
	*io.PipeReader

	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b body) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}
